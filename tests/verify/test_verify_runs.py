"""What `warplint verify` tells of programs that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.probe


SOURCE = (Path(__file__).parent / "programs" / "swing.py").read_text(encoding="utf-8").splitlines()


def place(text: str) -> str:
    """Where the program says this."""
    return f"swing.py:{next(n for n, line in enumerate(SOURCE, 1) if text in line)}"


OVERWRITE, STEP, READ = place("launch(to_pixels"), place("launch(swing"), place("p.grad.numpy()")


@pytest.fixture(scope="module")
def overwritten(swing):
    return swing("--overwrite-at", "27")


@pytest.fixture(scope="module")
def too_fast(swing):
    return swing("--rate", "6", "--objective", "valley")


class TestAStateThatIsOverwrittenAtALateStep:
    def test_the_first_line_is_the_verdict_with_its_place(self, overwritten):
        assert overwritten.status == 1
        assert overwritten.first_line.startswith(f"the gradients are wrong because of {OVERWRITE}: ")
        assert overwritten.first_line.endswith("(WL101 write-after-read)")
        assert overwritten.story["headline"] == overwritten.first_line

    def test_bisection_finds_the_step_and_the_launch(self, overwritten):
        where = overwritten.story["localization"]
        assert where["kind"] == "launch"
        assert f"swing.py:{where['location']['line']}" == STEP
        assert where["steps"] == 40
        assert f"`swing` in step 27 of 40 ({STEP})" in where["text"]
        assert "no longer holds what it held" in where["text"]

    def test_on_the_loss_side_autodiff_is_the_finite_difference(self, overwritten):
        places = overwritten.story["localization"]["places"]
        parted = [p["outcome"] == "differs" for p in places]
        assert parted == sorted(parted)
        assert all(p["relative_error"] < 1e-3 for p in places if p["outcome"] == "agrees")
        assert all(p["relative_error"] > 0.02 for p in places if p["outcome"] == "differs")
        assert min(p["step"] for p in places if p["outcome"] == "agrees" and p["step"]) == 27
        assert max(p["step"] for p in places if p["outcome"] == "differs") == 27

    def test_the_evidence_follows_in_order(self, overwritten):
        titles = [line for line in overwritten.text.splitlines() if line[:1].strip()][1:]
        assert titles == [
            "what was measured",
            "signature: subtly-wrong",
            "where autodiff and finite difference part",
            "the cause",
            "looked for and ruled out",
            f"Warp {overwritten.record['programs'][0]['warp']}",
            "how it was found",
            "read on",
        ]
        assert "with the cause taken away: " in overwritten.text
        assert "python .warplint/evidence/WL101-swing-" in overwritten.text
        assert f"its gradient is read by numpy() or an array view at {READ}" in overwritten.said


class TestRightGradientsWithALearningRateThatIsTooLarge:
    def test_the_gradient_is_not_to_blame(self, too_fast):
        assert too_fast.status == 0
        assert too_fast.first_line.startswith("the gradients are right: for `p` autodiff agrees")
        assert "that is not a gradient bug: the objective" in too_fast.first_line
        assert too_fast.rules("confirmed") == set()

    def test_the_update_is_held_against_the_curvature(self, too_fast):
        course = too_fast.story["course"]
        assert course["verdict"] in ("grows", "not finite")
        assert "the learning rate is too large" in course["hints"][-1]
        assert len(course["iterations"]) >= 3
        assert "iteration objective update along the gradient" in too_fast.said


def test_windows_that_are_right_by_themselves(swing):
    found = swing("--window", "20")
    where = found.story["localization"]
    assert found.status == 1
    assert "WL503" in found.first_line
    assert "every window by itself is right: within its tape autodiff agrees" in where["text"]
    assert "over the full horizon they disagree" in where["text"]
    assert [w["outcome"] for w in where["windows"]] == ["agrees", "differs"]


def test_the_horizon_and_the_iteration_can_be_chosen(swing):
    found = swing(options=("--horizon", "8", "--iteration", "3", "--parameter", "p"))
    assert found.status == 0
    assert "measured over a shortened horizon" in found.first_line
    assert "STEPS = 8 instead of 40" in found.said
    checks = found.record["results"][0]["evidence"]["checks"]
    assert {check["iteration"] for check in checks} == {3, 4}


@pytest.mark.parametrize(
    ("objective", "first_line", "number"),
    [
        ("steps", "zero: the objective is flat here", "use a surrogate"),
        ("large", "quantised", "the objective is 80000000"),
        ("corner", "kink, the one-sided slopes disagree", "slope from the left -2, from the right 2"),
        ("chaos", "chaotic", "finite differences along `gradient` by step"),
    ],
)
def test_what_cannot_be_measured_is_no_cause(swing, objective, first_line, number):
    found = swing("--objective", objective, "--iterations", "1")
    assert found.status == 0
    assert first_line in found.first_line
    assert number in found.said
    assert found.rules("confirmed") == set()
    assert ("right" in found.first_line.split(":")[0]) == (
        objective == "steps" or "cannot" in found.first_line
    )


@pytest.mark.parametrize(
    ("missing", "told", "to_do"),
    [
        ("tape", "the program ran no backward pass", "what to do: no tape was entered"),
        ("backward", "the program ran no backward pass", "what to do: no `tape.backward(loss)`"),
        ("reading", "no gradient was read after the backward pass", "Let it read `parameter.grad`"),
    ],
)
def test_nothing_to_measure_says_what_is_missing(swing, missing, told, to_do):
    found = swing("--without", missing)
    assert found.status == 0
    assert found.first_line == f"it cannot be told whether the gradients are right: {told}"
    assert to_do in found.said


def test_strict_fails_what_cannot_be_told(swing):
    assert swing("--without", "tape", options=("--strict",)).status == 1
