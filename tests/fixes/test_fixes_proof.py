"""Which fixes count as verified: a search with made-up checks of edited files."""

from __future__ import annotations

import dataclasses

import pytest
from fixes_support import result

from warplint.fixes.proof import Outcome, Search, Trial, compare
from warplint.model import ProgramRow, ProgramStatus, Result, Verdict
from warplint.probe import Objective, Slope

TEXT = """import warp as wp
y = wp.zeros(3)
for t in range(3):
    y.zero_()
tape.backward(loss)
"""
NO_GRADIENT = result("WL201", TEXT, "wp.zeros(3)", "`y` has no gradient")
RESET = result("WL105", TEXT, "y.zero_()", "`y` is reset")
RIGHT = Result("WL902", "", Verdict.NOTE, "right", NO_GRADIENT.location, program="train.py")


def trial(*results: Result, status: ProgramStatus | None = None, value: float | None = 2.0) -> Trial:
    wrong = any(r.verdict is Verdict.CONFIRMED for r in results)
    status = status or (ProgramStatus.WRONG if wrong else ProgramStatus.VERIFIED)
    row = ProgramRow("train.py", (), "python", "1.19.0", "cpu", status)
    told = () if value is None else (Objective("train.py", "y", value, 0.0),)
    return Trial(tuple(results), (row,), told)


def search(run) -> Search:
    """A search in one file; ``run`` sees the edited text."""
    return Search(["train.py"], lambda file: TEXT.encode(), lambda files: run(files["train.py"].decode()))


def mended(s: Search) -> list[tuple[str, str]]:
    return [(m.result.rule, m.fix.applicability) for m in s.mended]


def test_a_fix_that_makes_the_program_right_is_verified():
    s = search(lambda text: trial(RIGHT) if "requires_grad=True" in text else trial(NO_GRADIENT))
    after = s.mend(trial(NO_GRADIENT))
    assert mended(s) == [("WL201", "verified")]
    assert after.results == (RIGHT,)
    assert b"wp.zeros(3, requires_grad=True)" in s.contents["train.py"]


@pytest.mark.parametrize(
    "after",
    [
        trial(NO_GRADIENT),
        trial(status=ProgramStatus.BLOCKED),
        trial(RIGHT, value=2.5),
        trial(dataclasses.replace(NO_GRADIENT, rule="WL901", message="the gradient differs")),
        trial(dataclasses.replace(NO_GRADIENT, verdict=Verdict.LATENT), RIGHT),
    ],
    ids=["still-wrong", "does-not-run", "another-value", "wrong-otherwise", "still-there"],
)
def test_a_wrong_fix_changes_nothing(after):
    s = search(lambda text: after)
    before = trial(NO_GRADIENT)
    assert s.mend(before) is before
    assert (s.mended, s.contents) == ([], {})


@pytest.mark.parametrize("after", [trial(status=ProgramStatus.INCONCLUSIVE), trial(RIGHT, value=None)])
def test_what_cannot_be_measured_is_unsafe(after):
    s = search(lambda text: after)
    s.mend(trial(NO_GRADIENT))
    assert mended(s) == [("WL201", "unsafe")]
    assert s.contents == {}


def test_the_next_candidate_is_tried():
    s = search(lambda text: trial(RIGHT) if "y.requires_grad = True" in text else trial(NO_GRADIENT))
    s.mend(trial(NO_GRADIENT))
    assert s.mended[0].fix.title == "set requires_grad after the allocation"


def test_several_fixes_are_tried_together():
    runs = []

    def run(text):
        runs.append(text)
        both = "requires_grad=True" in text and "zero_()" not in text
        return trial(RIGHT) if both else trial(NO_GRADIENT, RESET)

    s = search(run)
    s.mend(trial(NO_GRADIENT, RESET))
    assert mended(s) == [("WL201", "verified"), ("WL105", "verified")]
    assert len(runs) == 1


def checked(text: str) -> Trial:
    """Without a gradient nothing is seen of the reset."""
    if "requires_grad=True" not in text:
        return trial(NO_GRADIENT)
    return trial(RESET) if "zero_()" in text else trial(RIGHT)


def test_a_finding_that_comes_to_light_is_fixed_in_the_same_run():
    s = search(checked)
    s.mend(trial(NO_GRADIENT))
    assert mended(s) == [("WL201", "verified"), ("WL105", "verified")]
    assert b"y = wp.zeros_like(y)" in s.contents["train.py"]
    (edit,) = s.mended[1].fix.edits
    assert edit.location == RESET.location  # as the file is on the disk


def test_what_was_suspected_before_needs_no_second_look():
    suspected = dataclasses.replace(RESET, verdict=Verdict.DISMISSED)
    s = search(checked)
    s.trials_left = 2
    s.mend(trial(NO_GRADIENT, suspected))
    assert mended(s) == [("WL201", "verified"), ("WL105", "verified")]


def test_a_fix_is_taken_back_if_what_it_brings_to_light_cannot_be_fixed():
    s = search(lambda text: trial(RESET) if "requires_grad" in text else trial(NO_GRADIENT))
    before = trial(NO_GRADIENT)
    assert s.mend(before) is before
    assert mended(s) == [("WL201", "unsafe")]
    assert s.contents == {}


def test_what_was_confirmed_before_may_remain():
    other = dataclasses.replace(RESET, location=dataclasses.replace(RESET.location, file="other.py"))
    s = search(lambda text: trial(other) if "requires_grad" in text else trial(NO_GRADIENT, other))
    s.mend(trial(NO_GRADIENT, other))
    assert mended(s) == [("WL201", "verified")]


def test_results_that_are_not_wanted_are_not_fixed():
    s = search(checked)
    s.wanted = lambda found: found.rule != "WL201"
    s.mend(trial(NO_GRADIENT))
    assert s.mended == []


def test_runs_are_counted():
    s = search(lambda text: trial(NO_GRADIENT, RESET))
    s.trials_left = 3
    s.mend(trial(NO_GRADIENT, RESET))
    assert s.trials_left == 0


def test_a_refuted_fix_is_never_made_anyway():
    s = search(lambda text: trial(NO_GRADIENT))
    s.mend(trial(NO_GRADIENT))
    assert s.make_anyway([NO_GRADIENT]) == []
    assert s.contents == {}


def test_what_was_not_run_is_made_anyway_all_at_once():
    s = search(checked)
    found = [dataclasses.replace(r, verdict=Verdict.UNVERIFIED) for r in (RESET, NO_GRADIENT, RESET)]
    assert [m.fix.applicability for m in s.make_anyway(found)] == ["unsafe"] * 3
    fixed = TEXT.replace("wp.zeros(3)", "wp.zeros(3, requires_grad=True)").replace(
        "y.zero_()", "y = wp.zeros_like(y)"
    )
    assert s.contents["train.py"].decode() == fixed


def sloped(checked: Trial, ad: float, fd: float, parameter: str = "y") -> Trial:
    slope = Slope("random signs 1", ad, fd, 1e-4)
    return dataclasses.replace(
        checked, objectives=(Objective("train.py", parameter, 2.0, 0.0, (), (slope,)),)
    )


@pytest.mark.parametrize(("ad", "outcome"), [(3.0, Outcome.VERIFIED), (1.5, Outcome.REFUTED)])
def test_a_program_that_only_agrees_with_itself_is_not_right(ad, outcome):
    """Other seeds are another objective: what counts are the differences of the one before."""
    before, after = sloped(trial(NO_GRADIENT), 1.0, 3.0), sloped(trial(RIGHT), ad, ad)
    assert compare(before, after, [NO_GRADIENT], same_values=False) is outcome


def test_without_a_common_direction_other_seeds_are_not_verified():
    assert compare(trial(NO_GRADIENT), trial(RIGHT), [NO_GRADIENT], same_values=False) is Outcome.UNDECIDED


def test_a_parameter_that_is_no_longer_measured_is_no_success():
    before, after = sloped(trial(NO_GRADIENT), 1.0, 3.0), sloped(trial(RIGHT), 3.0, 3.0, "other")
    assert compare(before, after, [NO_GRADIENT], same_values=True) is Outcome.REFUTED


def test_a_new_hazard_is_not_taken_for_a_cure():
    hazard = dataclasses.replace(RESET, verdict=Verdict.LATENT)
    outcome = compare(trial(NO_GRADIENT), trial(RIGHT, hazard), [NO_GRADIENT], same_values=True)
    assert outcome is Outcome.UNDECIDED


def test_a_loss_that_becomes_finite_is_no_other_value():
    before, after = trial(NO_GRADIENT, value=float("nan")), trial(RIGHT, value=1.0)
    assert compare(before, after, [NO_GRADIENT], same_values=True) is Outcome.VERIFIED
