"""Random programs through the probe: the right ones are never called wrong, the wrong ones never right.

The full run, with its targets, is ``tests/benchmarks/numerics.py``.
"""

from __future__ import annotations

import ast

import pytest
from numerics_harness import Run, explain, run_programs, warm_up
from numerics_programs import CORRECT, CUT, SCALED, VARIANTS, RandomProgram, generate

SEEDS = {CORRECT: (0, 8, 3, 4, 17, 26), SCALED: (6, 2, 11), CUT: (5, 9, 1)}
"""One program of each family and variant at least; 17 has contact, 26 friction or limits."""


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    programs = [generate(seed, variant) for variant, seeds in SEEDS.items() for seed in seeds]
    warm_up(programs)
    return run_programs(programs, jobs=2)


@pytest.mark.probe
def test_right_gradients_are_verified(runs: list[Run]) -> None:
    right = [r for r in runs if r.program.variant == CORRECT]
    for run in right:
        assert run.status != "wrong", "\n".join(explain(run))
    assert sum(r.status == "verified" for r in right) >= len(right) - 1


@pytest.mark.probe
def test_wrong_gradients_are_found(runs: list[Run]) -> None:
    wrong = [r for r in runs if r.program.variant != CORRECT]
    for run in wrong:
        assert run.status != "verified", "\n".join(explain(run))
    assert sum(r.status == "wrong" for r in wrong) >= len(wrong) - 1


@pytest.mark.probe
def test_a_right_gradient_takes_few_forward_passes(runs: list[Run]) -> None:
    for run in runs:
        one_parameter = len(run.facts.episodes) == 2
        if run.program.variant == CORRECT and one_parameter and not run.program.kinks:
            assert run.forward_passes <= 60, "\n".join(explain(run))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(12))
def test_a_program_is_a_file_of_its_own(seed: int, variant: str) -> None:
    program = generate(seed, variant)
    ast.parse(program.source)
    assert program.source == generate(seed, variant).source
    assert "# buffer" not in program.source


@pytest.mark.parametrize("seed", range(12))
def test_variants_differ_in_the_mistake_alone(seed: int) -> None:
    correct, scaled, cut = (_lines(generate(seed, v)) for v in (CORRECT, SCALED, CUT))
    assert len(cut) == len(correct)
    changed = [(a, b) for a, b in zip(correct, cut, strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0][0].replace(", requires_grad=True", "") == changed[0][1]
    assert len(scaled) == len(correct) + 5
    assert sum("0.95" in line for line in scaled) == 1


def _lines(program: RandomProgram) -> list[str]:
    return program.source.splitlines()
