"""`--baseline`: what was there before does not fail the run, wherever its line has moved to."""

from __future__ import annotations

import json

import pytest
from cli_fakes import FINDING, TRAIN, result, row

from warplint.model import Finding, Location, ProgramStatus, Verdict


@pytest.fixture
def known(project, stages, warplint):
    """A project with one result, which its baseline holds."""
    run = warplint("--no-probe", "--write-baseline", "baseline.json")
    assert (run.status, run.err) == (0, "warplint: 1 result written to baseline.json\n")
    return project


def check(warplint, *options: str):
    run = warplint("--no-probe", "--baseline", "baseline.json", "--format", "json", *options)
    return run, [item["rule"] for item in json.loads(run.out)["results"]]


def test_a_baseline_is_for_people_to_read(known):
    assert json.loads((known / "baseline.json").read_text()) == {
        "schema": 1,
        "results": [
            {
                "file": "train.py",
                "rule": "WL103",
                "code": "wp.launch(step, dim=1, inputs=[a], outputs=[b])",
                "count": 1,
            }
        ],
    }


def test_known_results_are_left_out_and_counted(known, warplint):
    assert check(warplint)[1] == []
    run = warplint("--no-probe", "--baseline", "baseline.json")
    assert run.status == 0
    assert run.out == "nothing found in 1 file (1 more in the baseline); nothing was run (--no-probe)\n"
    assert run.err == ""


def test_a_line_that_moved_is_the_same_line(known, stages, warplint):
    (known / "train.py").write_text(
        "# new\n\n" + TRAIN.replace("wp.launch(step, dim=1,", "wp.launch(step,  dim=1, ")
    )
    stages.findings = (Finding("WL103", "another wording", Location("train.py", 9, 13)),)
    assert check(warplint)[1] == []


def test_a_second_one_on_another_line_is_new(known, stages, warplint):
    stages.findings = (FINDING, Finding("WL103", "m", Location("train.py", 8, 13)))
    run, rules = check(warplint)
    assert (run.status, rules) == (1, ["WL103"])
    assert json.loads(run.out)["results"][0]["location"]["line"] == 8


def test_as_many_as_were_counted(known, stages, warplint):
    twice = TRAIN.replace(
        "            a, b = b, a\n", "            wp.launch(step, dim=1, inputs=[a], outputs=[b])\n"
    )
    (known / "train.py").write_text(twice)
    stages.findings = (FINDING, Finding("WL103", "m", Location("train.py", 8, 13)))
    assert check(warplint)[1] == ["WL103"]
    warplint("--no-probe", "--write-baseline", "baseline.json")
    assert json.loads((known / "baseline.json").read_text())["results"][0]["count"] == 2
    assert check(warplint)[1] == []


def test_another_rule_on_the_line_is_new(known, stages, warplint):
    stages.findings = (Finding("WL101", "m", FINDING.location),)
    assert check(warplint)[1] == ["WL101"]


def test_a_confirmed_result_is_known_too(known, stages, warplint):
    stages.results = (result(Verdict.CONFIRMED),)
    stages.rows = (row(ProgramStatus.WRONG),)
    assert warplint("--baseline", "baseline.json").status == 0


def test_notes_are_neither_kept_nor_left_out(project, stages, warplint):
    stages.results = (result(Verdict.NOTE),)
    stages.rows = (row(ProgramStatus.VERIFIED),)
    warplint("--write-baseline", "baseline.json")
    assert json.loads((project / "baseline.json").read_text())["results"] == []
    assert "WL103" in warplint("--baseline", "baseline.json").out


def test_an_entry_whose_code_is_gone_is_told(known, stages, warplint):
    (known / "train.py").write_text("import warp as wp\n\nwp.Tape()\n")
    stages.findings = ()
    run, _ = check(warplint)
    assert run.status == 0
    assert run.err == (
        "warplint: warning: baseline.json: no longer found: WL103 in train.py"
        " (`wp.launch(step, dim=1, inputs=[a], outputs=[b])`);"
        " --write-baseline baseline.json leaves it out\n"
    )


def test_an_entry_that_a_full_run_does_not_meet_is_told(known, stages, warplint):
    stages.findings = ()
    assert check(warplint)[0].err == ""  # what reads only may miss what was measured
    stages.rows = (row(ProgramStatus.VERIFIED),)
    full = ("--baseline", "baseline.json")
    assert "no longer found: WL103 in train.py" in warplint(*full).err
    assert "no longer found" not in warplint(*full, "--ignore", "WL103").err
    (known / "other.py").write_text("")
    assert "no longer found" not in warplint(*full, "other.py").err
    stages.rows = (row(ProgramStatus.BLOCKED),)
    assert "no longer found" not in warplint(*full).err


def test_a_baseline_of_the_configuration_is_beside_it(known, stages, warplint, monkeypatch):
    (known / "warplint.toml").write_text('baseline = "baseline.json"\nno-probe = true\n')
    assert warplint().status == 0
    (known / "sub").mkdir()
    monkeypatch.chdir(known / "sub")
    stages.findings = (Finding("WL103", "m", Location((known / "train.py").as_posix(), 7)),)
    assert warplint("..").status == 0
    (known / "baseline.json").unlink()
    run = warplint("..")
    assert (run.status, run.out) == (2, "")
    assert "cannot read" in run.err
    assert warplint("..", "--write-baseline", "../baseline.json").status == 0
    assert warplint("..").status == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "--baseline: cannot read baseline.json: no such file or directory"),
        ("", "--baseline: baseline.json was not written by --write-baseline"),
        ("[]", "--baseline: baseline.json was not written by --write-baseline"),
        ('{"schema": 1}', "--baseline: baseline.json was not written by --write-baseline"),
        (
            '{"schema": 1, "results": [{"rule": "WL1"}]}',
            "--baseline: baseline.json was not written by --write-baseline",
        ),
        ('{"schema": 2, "results": []}', "--baseline: baseline.json has schema 2; this version reads 1"),
    ],
)
def test_no_baseline(project, stages, warplint, text, message):
    if text is not None:
        (project / "baseline.json").write_text(text)
    run = warplint("--no-probe", "--baseline", "baseline.json")
    assert (run.status, run.out, run.err) == (2, "", f"warplint: error: {message}\n")


def test_a_baseline_that_cannot_be_written(project, stages, warplint):
    run = warplint("--no-probe", "--write-baseline", "train.py/baseline.json")
    assert run.status == 2
    assert run.err == ("warplint: error: cannot write train.py/baseline.json: train.py is not a directory\n")
