"""Whole programs in the shapes people write, each with its truth known from elsewhere.

The truth of every program was established with central differences, in float64, of its objective
written once more in numpy: the right ones agree to 1e-6, the wrong ones are off by what the
comments say, in the gradient that their optimizer consumes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytestmark = pytest.mark.probe

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Shape:
    """One program: what ``check`` must say of it."""

    file: str
    status: str
    causes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The rules that must be confirmed (``A or B``: either), each with the lines where it may stand."""


SHAPES = (
    # Seeds that are adjoints of an earlier backward carry its objective on; they are no new one.
    Shape("checkpoint_segments.py", "verified"),
    # The same in one set of buffers: what the parameter's array holds in between are no versions of it.
    Shape("checkpoint_in_place.py", "verified"),
    Shape("checkpoint_by_kernel.py", "verified"),
    # One backward per row of a Jacobian, zeroed in between.
    Shape("jacobian_rows.py", "verified"),
    # Norm, clip and weight decay rewrite .grad in place before the step.
    Shape("clipped_by_kernels.py", "verified"),
    # States are rows of one array, the controls a slice of a longer one.
    Shape("rows_of_one_array.py", "verified"),
    # The other player's loss depends on these parameters too, but its gradient is thrown away.
    Shape("alternating_players.py", "verified"),
    # The same, and one gradient is looked at again after the other player's pass.
    Shape("logged_players.py", "verified"),
    # Right at the first iteration, that iteration's gradient ever after.
    Shape("renewed_array.py", "wrong", {"WL502": ("x = wp.array(",)}),
    # Every row of the Jacobian holds the ones before it too.
    Shape("rows_not_zeroed.py", "wrong", {"WL501": ("tape.backward(grads=",)}),
    # Off by up to 90 %: the neighbours are other ones by then.
    Shape("grid_built_anew.py", "wrong", {"WL106": ("grid.build(far",)}),
    # The adjoint of a numpy operation, by record_func.
    Shape("recorded_function.py", "verified"),
    # Off by 97 %: the cut path hides the two buffers.
    Shape(
        "two_masking_faults.py",
        "wrong",
        {
            "WL201": ("tau = wp.zeros(",),
            "WL103": ("wp.launch(swing,", "s0, s1 = s1, s0", "s0, s1 = a, b"),
        },
    ),
    # All of it: the cut path hides that the rest counts twice.
    Shape(
        "cut_before_doubled.py",
        "wrong",
        {"WL201": ("d = wp.zeros(",), "WL505": ("wp.launch(force",)},
    ),
    # Four times too large.
    Shape("scratch_force.py", "wrong", {"WL105": ("self.f.zero_()",)}),
    # Off by 168 %, one field of a struct, allocated in a helper.
    Shape("struct_field_without_gradient.py", "wrong", {"WL201": ("setattr(",)}),
    # Right at the first iteration, twice as large at the second.
    Shape(
        "never_zeroed.py", "wrong", {"WL501 or WL901": ("tape.backward(", "opt.step(", "for it in range(")}
    ),
    # Off by 89 %: the velocity's adjoint is not handed to the segment before.
    Shape(
        "checkpoint_adjoint_dropped.py",
        "wrong",
        {"WL509": ("tape.backward(grads=",)},
    ),
    # Off by 36 %: the same where the host keeps the states and puts them back.
    Shape("checkpoint_put_back_dropped.py", "wrong", {"WL509": ("tape.backward(",)}),
    # The target of the difference is computed off the tape, into arrays without a gradient.
    Shape("semi_gradient.py", "verified"),
    # A state that follows the parameters between the passes is no part of their objective.
    Shape("follower.py", "verified"),
    # A state that starts anew in every pass is, even if no word says so.
    Shape("untaped_rollout.py", "wrong", {"WL203": ("wp.launch(swing",)}),
    # Off by 1 %: a power of the custom adjoint of a function that is called in every step.
    Shape("custom_adjoint_slightly_off.py", "wrong", {"WL402": ("@wp.func_grad", "def adj_soft_sign")}),
    # Off by 5 %.
    Shape("same_in_and_out.py", "wrong", {"WL104": ("wp.launch(logistic",)}),
)


def check(directory: Path) -> dict:
    """The report of ``warplint check`` on a directory."""
    done = subprocess.run(
        [sys.executable, "-c", "from warplint.cli.main import run; run()", "check", ".", "--format", "json"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.file.removesuffix(".py"))
def test_shape(shape: Shape, tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / shape.file, tmp_path)
    report = check(tmp_path)
    (row,) = report["programs"]
    assert row["status"] == shape.status, (row["reason"], report["results"])
    lines = (PROGRAMS / shape.file).read_text(encoding="utf-8").splitlines()
    confirmed: dict[str, list[str]] = {}
    for result in report["results"]:
        if result["verdict"] == "confirmed":
            confirmed.setdefault(result["rule"], []).append(lines[result["location"]["line"] - 1])
    for rules, starts in shape.causes.items():
        (rule,) = confirmed.keys() & set(rules.split(" or "))
        for place in confirmed.pop(rule):
            assert place.strip().startswith(starts), (rule, place)
    assert not confirmed, "confirmed without being a cause"


def test_programs_are_all_listed() -> None:
    assert {shape.file for shape in SHAPES} == {path.name for path in PROGRAMS.glob("*.py")}
