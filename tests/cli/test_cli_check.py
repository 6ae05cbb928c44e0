"""`warplint check`: selection, suppression, formats, programs, notices."""

from __future__ import annotations

import json

import pytest
from cli_fakes import FINDING, TRAIN, result, row

from warplint.model import Finding, Location, ProgramStatus, Verdict


def rules_in(out: str) -> list[str]:
    return [item["rule"] for item in json.loads(out)["results"]]


def test_plain_paths_mean_check(project, stages, warplint):
    for call in ((), (".",), ("check",), ("check", "."), ("--verbose", "train.py"), ("check", "train.py")):
        assert "WL103" in warplint(*call, "--no-probe").out


def test_probe_takes_a_value_only_when_attached(project, stages, warplint):
    stages.rows = (row(ProgramStatus.VERIFIED),)
    warplint("--probe", ".")
    warplint("--probe=all", ".")
    assert len(stages.probed) == 2


def test_probe_of_programs_that_can_decide_a_finding(project, stages, warplint):
    (project / "other.py").write_text(TRAIN)
    warplint("--probe")
    warplint("--probe=findings")
    ran = [[program.file for program in call["programs"]] for call in stages.probed]
    assert ran == [["other.py", "train.py"], ["train.py"]]


def test_no_probe_says_so(project, stages, warplint):
    run = warplint("--no-probe", "--format", "json")
    (item,) = json.loads(run.out)["results"]
    assert (item["verdict"], item["reason"]) == ("unverified", "probing-disabled")
    assert item["name"] == "ping-pong-buffers"
    assert item["help"] == "use one array for each step"
    assert not stages.probed
    assert run.err == ""


def test_settings_reach_the_probe(project, stages, warplint):
    warplint(
        *("--timeout", "5", "--budget", "50", "--jobs", "2", "--python", "py", "--device", "cpu"),
        *("--set", "train.STEPS=8", "--set", "train.RATE=1e-3", "--no-cache"),
    )
    settings = stages.probed[0]["settings"]
    assert settings == {
        "root": project,
        "timeout": 5.0,
        "budget": 50.0,
        "jobs": 2,
        "python": "py",
        "device": "cpu",
        "overrides": (("train.STEPS", "8"), ("train.RATE", "1e-3")),
        "cache": False,
        "tracker": False,
    }


def test_entries_replace_the_programs_that_were_found(project, stages, warplint):
    (project / "tool.py").write_text("import warp\n")
    warplint("--entry", "train.py --small", "--entry", "tool.py")
    assert [p.label for p in stages.probed[0]["programs"]] == ["train.py --small", "tool.py"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), ["WL103", "WL901"]),
        (("--select", "WL1"), ["WL103"]),
        (("--select", "wl103,WL901"), ["WL103", "WL901"]),
        (("--select", "ping-pong-buffers"), ["WL103"]),
        (("--ignore", "gradient-mismatch"), ["WL103"]),
        (("--ignore", "WL1", "--ignore", "WL9"), []),
        (("--select", "WL1", "--ignore", "WL103"), []),
        (("--select", "ALL"), ["WL103", "WL901"]),
    ],
)
def test_select_and_ignore(project, stages, warplint, options, shown):
    stages.results = (result(Verdict.CONFIRMED), result(Verdict.CONFIRMED, rule="WL901"))
    stages.rows = (row(ProgramStatus.WRONG),)
    run = warplint(*options, "--format", "json")
    assert rules_in(run.out) == shown
    assert run.status == (1 if shown else 0)


def test_the_probe_sees_findings_that_are_not_selected(project, stages, warplint):
    # Otherwise a mismatch with a known cause would be called unexplained.
    warplint("--select", "WL2")
    assert stages.probed[0]["findings"] == (FINDING,)


def test_per_file_ignores_are_relative_to_the_configuration(project, stages, warplint, monkeypatch):
    (project / "warplint.toml").write_text('[per-file-ignores]\n"sub/train.py" = ["WL103"]\n')
    (project / "sub").mkdir()
    (project / "sub" / "train.py").write_text(TRAIN)
    monkeypatch.chdir(project / "sub")
    assert rules_in(warplint("--no-probe", "--format", "json").out) == []


def test_configuration_and_flags(project, stages, warplint):
    (project / "pyproject.toml").write_text(
        '[tool.warplint]\nformat = "json"\nno-probe = true\nignore = ["WL2"]\nstatic-fail-on = "never"\n'
        '[tool.warplint.probe]\nentries = ["train.py --small"]\nset = {train.STEPS = 8}\ntimeout = 7\n'
    )
    run = warplint()
    assert run.status == 0
    assert rules_in(run.out) == ["WL103"]
    assert not stages.probed
    warplint("--probe", "--format", "text")
    settings = stages.probed[0]["settings"]
    assert settings["timeout"] == 7
    assert settings["overrides"] == (("train.STEPS", "8"),)
    assert stages.probed[0]["programs"][0].arguments == ("--small",)


def test_configuration_of_the_checked_project_is_used(project, stages, warplint, tmp_path, monkeypatch):
    (project / "warplint.toml").write_text('ignore = ["WL103"]\n')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    stages.findings = (Finding("WL103", "m", Location((project / "train.py").as_posix(), 7)),)
    assert rules_in(warplint("--no-probe", "--format", "json", str(project)).out) == []


def test_configuration_beyond_the_repository_is_not_used(project, stages, warplint, monkeypatch):
    (project / "warplint.toml").write_text("strict = true\n")
    inner = project / "inner"
    (inner / ".git").mkdir(parents=True)
    monkeypatch.chdir(inner)
    (inner / "train.py").write_text(TRAIN)
    assert warplint("--no-probe", "--static-fail-on", "never").status == 0


def test_exclude(project, stages, warplint):
    (project / "warplint.toml").write_text('exclude = ["train.py"]\n')
    assert rules_in(warplint("--no-probe", "--format", "json").out) == []
    (project / "warplint.toml").unlink()
    assert rules_in(warplint("--no-probe", "--format", "json", "--exclude", "*.py").out) == []


def test_dismissed_only_on_request(project, stages, warplint):
    stages.results = (result(Verdict.DISMISSED),)
    stages.rows = (row(ProgramStatus.VERIFIED),)
    assert rules_in(warplint("--format", "json").out) == []
    assert rules_in(warplint("--format", "json", "--show-dismissed").out) == ["WL103"]


def test_several_outputs(project, stages, warplint):
    run = warplint(
        *("--no-probe", "--output", "json=out/a.json", "--output", "sarif=out/a.sarif"),
        *("--output", "github=out/a.github"),
    )
    assert "WL103" in run.out
    assert json.loads((project / "out/a.json").read_text())["schema"] == 1
    assert json.loads((project / "out/a.sarif").read_text())["version"] == "2.1.0"
    assert (project / "out/a.github").read_text().startswith("::warning file=train.py,line=7,")
    assert "\033" not in (project / "out/a.json").read_text()


def test_standard_output_takes_one_report(project, stages, warplint):
    run = warplint("--no-probe", "--output", "json=-", "--output", "sarif=a.sarif")
    assert rules_in(run.out) == ["WL103"]  # and no text before or after it
    assert (project / "a.sarif").exists()
    assert rules_in(warplint("--no-probe", "--format", "json", "--output-file", "-").out) == ["WL103"]
    for extra in (("--format", "text"), ("--output", "github=-")):
        run = warplint("--no-probe", "--output", "json=-", *extra)
        assert (run.status, run.out) == (2, "")
        assert run.err == "warplint: error: --output: only one report can go to standard output\n"
    run = warplint("--no-probe", "--output", "json=a", "--output", "sarif=a")
    assert run.err == "warplint: error: --output: only one report can go to a\n"


def test_output_file(project, stages, warplint):
    run = warplint("--no-probe", "--format", "json", "--output-file", "report.json")
    assert run.out == ""
    assert rules_in((project / "report.json").read_text()) == ["WL103"]


def test_the_same_call_gives_the_same_bytes(project, stages, warplint):
    first = warplint("--no-probe", "--format", "sarif").out
    assert warplint("--no-probe", "--format", "sarif").out == first


def test_a_file_that_does_not_parse_is_a_result(project, stages, warplint):
    (project / "broken.py").write_text("import warp as wp\n\ndef (:\n")
    (project / "latin.py").write_bytes(b"import warp\n# caf\xe9\n")
    run = warplint("--no-probe", "--static-fail-on", "never", "--format", "json")
    assert run.status == 1
    assert [
        (item["rule"], item["location"]["file"], item["location"]["line"], item["location"]["column"])
        for item in json.loads(run.out)["results"]
    ] == [("WL002", "broken.py", 3, 5), ("WL002", "latin.py", 2, 6), ("WL103", "train.py", 7, 13)]


def test_list_programs(project, stages, warplint):
    (project / "plain.py").write_text('if __name__ == "__main__":\n    print()\n')
    (project / "heavy.py").write_text(TRAIN)
    (project / "warplint.toml").write_text('[probe]\nexclude = ["heavy.py"]\n')
    run = warplint("--list-programs")
    assert run.status == 0
    assert run.out.splitlines() == [
        "heavy.py  not run: excluded by the configuration",
        "plain.py  not run: reaches no tape and no manual adjoint launch",
        "train.py  run",
    ]
    run = warplint("--list-programs", "--format", "json", "--entry", "train.py --small")
    assert json.loads(run.out)["programs"] == [
        {
            "program": "train.py",
            "arguments": ["--small"],
            "working_directory": ".",
            "module": None,
            "runs": True,
            "reason": None,
        }
    ]
    assert not stages.probed


def test_nothing_could_be_probed_is_said_once_and_loudly(project, stages, warplint):
    stages.rows = (row(ProgramStatus.BLOCKED, "blocked: no module named 'pxr'"),)
    run = warplint()
    assert run.status == 0
    assert run.err == (
        "warplint: warning: nothing could be probed: 1 program could not be run"
        " (blocked: no module named 'pxr'); no gradient was measured\n"
    )
    stages.rows = ()
    (project / "train.py").write_text("import warp as wp\n\n\ndef f(t):\n    with wp.Tape():\n        pass\n")
    stages.results = (result(Verdict.UNVERIFIED, reason="no-entry-point"),)
    assert "no program that reaches a tape was found" in warplint().err


def test_programs_that_the_configuration_excludes_are_not_called_missing(project, stages, warplint):
    (project / "warplint.toml").write_text('[probe]\nexclude = ["train.py"]\n')
    assert warplint().err == (
        "warplint: warning: nothing could be probed: 1 program excluded by the configuration;"
        " no gradient was measured\n"
    )


def test_a_tree_without_warp_is_quietly_clean(tmp_path, stages, warplint, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stages.findings = ()
    (tmp_path / "a.py").write_text("print()\n")
    run = warplint()
    assert (run.status, run.out, run.err) == (0, "nothing found in 1 file\n", "")
    (tmp_path / "a.py").write_text('if __name__ == "__main__":\n    print()\n')
    assert warplint().err == ""


def test_programs_without_a_verdict_are_said(project, stages, warplint):
    stages.rows = (row(ProgramStatus.INCONCLUSIVE, "too noisy"), row(ProgramStatus.BLOCKED, "it exits"))
    assert warplint().err == (
        "warplint: warning: nothing could be probed: 1 program could not be run (it exits);"
        " 1 program ran without a verdict (too noisy); no gradient was measured\n"
    )
    stages.rows += (row(ProgramStatus.VERIFIED),)
    assert warplint().err == ""


def test_a_directory_without_python_is_said(project, stages, warplint):
    (project / "empty").mkdir()
    run = warplint("empty")
    assert run.status == 0
    assert run.err == "warplint: warning: nothing was checked: no Python file was found in empty\n"
    assert "no Python file that is not excluded was found in ." in warplint("--exclude", "*.py").err


def test_what_was_named_and_is_not_checked_is_said(project, stages, warplint):
    (project / "notes.txt").write_text("hello")
    assert warplint("--no-probe", "notes.txt", "train.py").err == (
        "warplint: warning: notes.txt: not checked: not a Python file\n"
    )


def test_notes_of_the_probe_are_said(project, stages, warplint):
    stages.rows = (row(ProgramStatus.WRONG),)
    stages.notes = ("no evidence was written",)
    assert warplint().err == "warplint: warning: no evidence was written\n"


def test_no_finding_leaves_nothing_to_probe_on_request(project, stages, warplint):
    stages.findings = ()
    assert warplint("--probe=findings").err == ""
    assert "nothing could be probed" in warplint("--probe=all").err


def test_quiet_and_verbose(project, stages, warplint):
    stages.skipped = ("train.py:4: call to torch.compile",)
    quiet = warplint("--no-probe", "--quiet").out
    assert quiet == "train.py:7:13 WL103 ping-pong-buffers  unverified: `a` and `b` take turns\n"
    verbose = warplint("--no-probe", "--verbose").out
    assert "not followed: train.py:4: call to torch.compile" in verbose
    assert "not followed" not in warplint("--no-probe").out


def test_progress_is_lines_on_stderr_with_verbose(project, stages, warplint):
    stages.rows = (row(ProgramStatus.VERIFIED),)
    assert warplint("--verbose").err == "warplint: 1/1 train.py: done\n"
    assert warplint().err == ""


def test_statistics(project, stages, warplint):
    assert "1  WL103 ping-pong-buffers  unverified" in warplint("--no-probe", "--statistics").out


def test_timings(project, stages, warplint):
    run = warplint("--no-probe", "--timings")
    assert "warplint: static: " in run.err


def test_stop_after_static(project, stages, warplint):
    run = warplint("--stop-after", "static", "--format", "json")
    assert rules_in(run.out) == ["WL103"]
    assert not stages.probed


def suppress(project, comment: str, line: int = 7) -> None:
    lines = TRAIN.splitlines()
    lines[line - 1] += f"  {comment}"
    (project / "train.py").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("rules", ["[WL103]", "[WL1]", "[ping-pong-buffers]", "[WL201, WL103]", ""])
def test_suppressed(project, stages, warplint, rules):
    suppress(project, f"# warplint: ignore{rules}")
    run = warplint("--no-probe", "--format", "json")
    assert rules_in(run.out) == []
    assert run.status == 0


def test_unused_suppression(project, stages, warplint):
    suppress(project, "# warplint: ignore[WL104]")
    run = warplint("--no-probe", "--format", "json")
    assert rules_in(run.out) == ["WL103", "WL001"]
    assert json.loads(run.out)["results"][1]["verdict"] == "note"


def test_unused_suppression_only_if_its_rule_was_decided(project, stages, warplint):
    suppress(project, "# warplint: ignore[WL901]")
    assert rules_in(warplint("--no-probe", "--format", "json").out) == ["WL103"]
    suppress(project, "# warplint: ignore[WL104]")
    assert rules_in(warplint("--no-probe", "--format", "json", "--select", "WL103").out) == ["WL103"]
    assert rules_in(warplint("--no-probe", "--format", "json", "--ignore", "WL104").out) == ["WL103"]


def test_suppression_of_a_measured_rule(project, stages, warplint):
    suppress(project, "# warplint: ignore[WL901]")
    stages.rows = (row(ProgramStatus.VERIFIED),)
    assert rules_in(warplint("--format", "json").out) == ["WL001"]
    stages.rows = (row(ProgramStatus.BLOCKED),)
    assert rules_in(warplint("--format", "json").out) == []


def test_suppression_of_a_dismissed_finding_is_in_use(project, stages, warplint):
    suppress(project, "# warplint: ignore[WL103]")
    stages.results = (result(Verdict.DISMISSED),)
    stages.rows = (row(ProgramStatus.VERIFIED),)
    assert rules_in(warplint("--format", "json").out) == []


def complaints(run) -> list[str]:
    return [item["message"] for item in json.loads(run.out)["results"] if item["rule"] == "WL001"]


def test_suppression_that_names_an_unknown_rule(project, stages, warplint):
    suppress(project, "# warplint: ignore[WL77]")
    assert complaints(warplint("--no-probe", "--format", "json")) == [
        "this comment names an unknown rule: WL77"
    ]
    # Also where the others it names are right.
    suppress(project, "# warplint: ignore[WL103, aliased-sate]")
    run = warplint("--no-probe", "--format", "json")
    assert complaints(run) == [
        "this comment names an unknown rule: aliased-sate; did you mean aliased-state?"
    ]
    assert rules_in(run.out) == ["WL001"]


@pytest.mark.parametrize("comment", ["ignore[WL103", "ignore WL103", "ignore(WL103)", "ignroe[WL103]"])
def test_a_suppression_that_cannot_be_understood(project, stages, warplint, comment):
    suppress(project, f"# warplint: {comment}")
    run = warplint("--no-probe", "--format", "json")
    assert rules_in(run.out) == ["WL103", "WL001"]
    assert complaints(run)[0].startswith("this comment suppresses nothing: ")
    assert run.status == 1


def test_suppression_of_which_a_part_is_used(project, stages, warplint):
    suppress(project, "# warplint: ignore[WL103, WL104]")
    assert complaints(warplint("--no-probe", "--format", "json")) == []  # it may be for what is measured
    stages.rows = (row(ProgramStatus.VERIFIED),)
    stages.results = (result(Verdict.LATENT),)
    assert complaints(warplint("--format", "json")) == ["this comment need not name WL104: no WL104 here"]


def test_a_bare_comment_does_not_excuse_itself(project, stages, warplint):
    stages.findings = ()
    stages.rows = (row(ProgramStatus.VERIFIED),)
    suppress(project, "# warplint: ignore")
    assert rules_in(warplint("--format", "json").out) == ["WL001"]
    suppress(project, "# warplint: ignore[WL104, WL001]")
    assert rules_in(warplint("--format", "json").out) == []
