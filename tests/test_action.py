"""The GitHub action: its steps, run as the runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}

BAD = (ROOT / "fixtures" / "cloth_ping_pong" / "fit_wind.py").read_text(encoding="utf-8")


@pytest.fixture
def check(tmp_path):
    """Run the step that checks, with the inputs and the event given; what the runner would see."""
    project, temporary, programs = (tmp_path / name for name in ("project", "tmp", "bin"))
    for directory in (project / ".git", temporary, programs):
        directory.mkdir(parents=True)
    (project / "a b.py").write_text(BAD)
    calls = tmp_path / "calls"
    (programs / "warplint").write_text(
        f'#!/bin/sh\nprintf "%s|" "$@" > "{calls}"\n'
        f'exec "{sys.executable}" -c \'from warplint.cli.main import run; run()\' "$@"\n'
    )
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)

    def run(**given: str) -> SimpleNamespace:
        inputs = {name: str(value["default"]) for name, value in ACTION["inputs"].items()}
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        values |= {"github.repository": "us/sim", **{name.replace("__", "."): v for name, v in given.items()}}
        environment = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: values.get(m[1], ""), text)
            for name, text in STEPS["Check"]["env"].items()
        }
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS["Check"]["run"]],
            cwd=project,
            env={
                **os.environ,
                **environment,
                **{name: str(path) for name, path in files.items()},
                "RUNNER_TEMP": str(temporary),
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        call = calls.read_text().split("|")[:-1] if calls.exists() else []
        summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return SimpleNamespace(
            status=done.returncode,
            out=done.stdout,
            err=done.stderr,
            outputs=outputs,
            call=call,
            summary=summary,
        )

    run.project = project
    return run


def test_a_pull_request_from_a_fork_is_read_and_not_run(check):
    from_fork = {"github__event__pull_request__number": "7"}
    from_fork["github__event__pull_request__head__repo__full_name"] = "them/sim"
    found = check(**from_fork)
    assert found.call[:2] == ["check", "--no-probe"]
    assert found.outputs == {"fork": "true", "status": "1"}
    assert found.status == 0  # a later step ends with it, after the upload
    assert "::warning file=a b.py,line=117," in found.out
    assert "WL103 ping-pong-buffers" in found.summary
    assert "Nothing was run" in found.summary
    assert '"WL103"' in (check.project / "warplint.sarif").read_text()
    # A fork that has been deleted has no name.
    gone = check(github__event__pull_request__number="7")
    assert gone.outputs["fork"] == "true"


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({}, "--probe"),
        ({"inputs__probe": "false"}, "--no-probe"),
        (
            {
                "github__event__pull_request__number": "7",
                "github__event__pull_request__head__repo__full_name": "us/sim",
            },
            "--probe",
        ),
        ({"inputs__probe": "true", "github__event__pull_request__number": "7"}, "--probe"),
    ],
)
def test_what_is_run(check, given, option):
    (check.project / "a b.py").write_text("import warp\n")
    found = check(**given)
    assert found.call[1] == option
    assert found.outputs["status"] == "0"


def test_arguments_are_split_as_a_shell_does_and_not_expanded(check):
    (check.project / "a b.py").rename(check.project / "b.py")
    found = check(
        inputs__args="--no-cache --exclude '*.md' --set 'b.X=\"$HOME *\"'",
        inputs__paths="b.py 'no such/*'",
        inputs__probe="false",
    )
    assert found.call[-6:] == ["*.md", "--set", 'b.X="$HOME *"', "--", "b.py", "no such/*"]
    assert found.outputs["status"] == "2"
    assert "exit status 2: see the log" in found.summary
    assert "no such file or directory: no such/*" in found.err
    assert check(inputs__args="'").status == 2


def test_the_exit_status_is_forwarded():
    step = STEPS["Exit status"]
    for status in ("0", "1", "2"):
        assert subprocess.run(["bash", "-c", step["run"]], env={"STATUS": status}).returncode == int(status)


def test_inputs_and_outputs_that_the_steps_use_are_there():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(ACTION["inputs"])
    ids = {step["id"] for step in STEPS.values() if "id" in step}
    assert set(re.findall(r"steps\.([\w-]+)\.", text)) <= ids


def test_the_page_speaks_of_every_input():
    page = (ROOT / "docs" / "github.md").read_text(encoding="utf-8")
    for name in ACTION["inputs"]:
        assert f"| `{name}` |" in page
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    for example in map(yaml.safe_load, examples):
        assert example["permissions"]["security-events"] == "write"
        for job in example["jobs"].values():
            for step in job["steps"]:
                if "OWNER/warplint" in step.get("uses", ""):
                    assert set(step["with"]) <= set(ACTION["inputs"])


def test_hooks_of_pre_commit():
    static, confirm = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (static["id"], static["language"], static["require_serial"]) == ("warplint", "python", True)
    assert static["types_or"] == ["python", "pyi"]
    assert "--no-probe" in static["entry"]
    assert (confirm["id"], confirm["language"]) == ("warplint-confirm", "system")
    assert confirm["pass_filenames"] is False
    assert confirm["always_run"] is True  # by hand it is asked for, whatever is staged
    assert confirm["stages"] == ["pre-push", "manual"]
