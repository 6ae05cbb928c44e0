"""`--fix`, `--diff` and `--unsafe-fixes`: what is written, shown and said."""

from __future__ import annotations

import dataclasses
import json

import pytest
from cli_fakes import FINDING, TRAIN, result, row

from warplint.model import Location, ProgramStatus, Verdict

SWAP = Location("train.py", 8, 13, 8, 24)
FOUND = dataclasses.replace(FINDING, location=SWAP)
FIXED = TRAIN.replace("a, b = b, a", "a, b = b, wp.zeros_like(a)")
DIFF = """--- a/train.py
+++ b/train.py
@@ -5,7 +5,7 @@
     with wp.Tape() as tape:
         for _ in range(8):
             wp.launch(step, dim=1, inputs=[a], outputs=[b])
-            a, b = b, a
+            a, b = b, wp.zeros_like(a)
     tape.backward(loss)
{blank}
{blank}
""".replace("{blank}", " ")


@pytest.fixture
def wrong(project, stages):
    """A program with a wrong gradient, which a fix makes right."""
    stages.findings = (FOUND,)
    stages.results = (dataclasses.replace(result(Verdict.CONFIRMED), location=SWAP),)
    stages.rows = (row(ProgramStatus.WRONG),)
    right = dataclasses.replace(
        result(Verdict.CONFIRMED), rule="WL902", verdict=Verdict.NOTE, message="the gradient is right"
    )
    stages.edited = ((right,), (row(ProgramStatus.VERIFIED),))
    return project


def test_a_verified_fix_is_written(wrong, stages, warplint):
    done = warplint("--fix")
    assert (wrong / "train.py").read_text() == FIXED
    assert done.status == 0
    assert (
        "train.py:8:13 WL103 ping-pong-buffers\n    write each step into a fresh array (verified" in done.out
    )
    assert "WL902 gradients-verified" in done.out and "1 fixed" in done.out
    tried = stages.probed[-1]["settings"]
    assert tried["overlay"] == (("train.py", FIXED.encode()),) and not tried["evidence"]


def test_what_was_fixed_is_in_json(wrong, warplint):
    report = json.loads(warplint("--fix", "--format", "json").out)
    (fixed,) = report["fixed"]
    assert fixed["fix"]["applicability"] == "verified"
    assert (fixed["fix"]["before"], fixed["fix"]["after"]) == (1.0, 1.0)
    (edit,) = fixed["fix"]["edits"]
    assert edit == {
        "location": {"file": "train.py", "line": 8, "column": 23, "end_line": 8, "end_column": 24},
        "text": "wp.zeros_like(a)",
    }
    assert [r["rule"] for r in report["results"]] == ["WL902"]


def test_a_diff_is_shown_and_nothing_written(wrong, warplint):
    done = warplint("--diff", "--output", "json=report.json")
    assert done.out == DIFF
    assert done.status == 1
    assert (wrong / "train.py").read_text() == TRAIN
    (found,) = json.loads((wrong / "report.json").read_text())["results"]
    assert (found["verdict"], found["fix"]["applicability"]) == ("confirmed", "verified")


def test_a_fix_that_does_not_mend_is_not_made(wrong, stages, warplint):
    stages.edited = (stages.results, stages.rows)
    done = warplint("--fix", "--unsafe-fixes")
    assert (wrong / "train.py").read_text() == TRAIN
    assert done.status == 1 and "fixed" not in done.out
    told = "nothing was fixed: no change was measured to make the gradient right"
    assert done.err == f"warplint: warning: {told}\n"
    done = warplint("--fix")
    assert "write each step into a fresh array (not applied: not measured to be right)" in done.out
    done = warplint("--diff")
    assert (done.out, done.status) == ("", 1)
    assert told in done.err


def test_a_fix_that_cannot_be_measured_needs_to_be_asked_for(wrong, stages, warplint):
    stages.edited = ((), (row(ProgramStatus.INCONCLUSIVE, "too noisy"),))
    warplint("--fix")
    assert (wrong / "train.py").read_text() == TRAIN
    done = warplint("--fix", "--unsafe-fixes")
    assert (wrong / "train.py").read_text() == FIXED
    assert "write each step into a fresh array (not verified)" in done.out


def test_without_the_probe_nothing_is_verified(wrong, stages, warplint):
    done = warplint("--fix", "--no-probe")
    assert done.status == 2 and "--unsafe-fixes" in done.err
    assert warplint("--diff", "--no-probe", "--unsafe-fixes").out == DIFF
    assert stages.probed == []


def test_suppressed_and_ignored_results_are_not_fixed(wrong, warplint):
    warplint("--fix", "--ignore", "WL103")
    assert (wrong / "train.py").read_text() == TRAIN
    suppressed = TRAIN.replace("a, b = b, a", "a, b = b, a  # warplint: ignore[WL103]")
    (wrong / "train.py").write_text(suppressed)
    warplint("--fix")
    assert (wrong / "train.py").read_text() == suppressed


def test_a_file_that_cannot_be_written_is_told(wrong, warplint, monkeypatch):
    monkeypatch.setattr("os.access", lambda *arguments: False)
    done = warplint("--fix")
    assert (wrong / "train.py").read_text() == TRAIN
    assert done.status == 1
    assert "nothing was fixed" in done.err and "write-protected" in done.err


def test_a_plain_check_offers_a_fix_and_runs_nothing_for_it(wrong, stages, warplint):
    done = warplint("--format", "json")
    (found,) = json.loads(done.out)["results"]
    assert found["fix"]["applicability"] == "unsafe"
    assert found["fix"]["title"] == "write each step into a fresh array"
    assert len(stages.probed) == 1


def test_a_restructuring_is_described(wrong, stages, warplint):
    stages.results = tuple(dataclasses.replace(r, rule="WL503", help="use one tape") for r in stages.results)
    (found,) = json.loads(warplint("--fix", "--format", "json").out)["results"]
    assert (found["fix"]["applicability"], found["fix"]["edits"]) == ("display", [])


@pytest.mark.parametrize(
    "arguments",
    [("--unsafe-fixes",), ("--fix", "--stop-after", "static"), ("--fix", "--shard", "1/2"), ("--fix", "-")],
)
def test_calls_that_make_no_sense(wrong, warplint, arguments):
    assert warplint(*arguments).status == 2
