"""Every mistake in a call is one line about that mistake, and exit status 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from cli_fakes import TRAIN, row

from warplint.cli import stages as real_stages
from warplint.model import ProgramStatus

REAL_PROBE = real_stages.probe


def error(run) -> str:
    """The one line that a failing call prints."""
    assert run.status == 2, run
    assert run.out == ""
    assert run.err.count("\n") == 1
    assert "Traceback" not in run.err
    return run.err.removeprefix("warplint: error: ").strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope.py",), "no such file or directory: nope.py"),
        (("--selct", "WL1"), "unknown option --selct; did you mean --select?"),
        (("--frobnicate",), "unknown option --frobnicate; see `warplint check --help`"),
        (("--format", "xml"), "--format: 'xml' is not one of 'text', 'json', 'sarif', 'github'"),
        (("--output", "report.json"), "--output: 'report.json' is not of the form FORMAT=FILE"),
        (
            ("--output", "xml=report"),
            "--output: unknown format 'xml'; choose text, json, sarif, github",
        ),
        (
            ("--select", "WL888"),
            "--select: unknown rule 'WL888'; `warplint rules` lists all",
        ),
        (
            ("--ignore", "ping-pong-bufers"),
            "--ignore: unknown rule 'ping-pong-bufers'; did you mean 'ping-pong-buffers'?",
        ),
        (("--set", "STEPS"), "--set: 'STEPS' is not of the form module.NAME=value"),
        (("--set", "a-b=3"), "--set: 'a-b=3' is not of the form module.NAME=value"),
        (("--jobs", "0"), "--jobs: 0 is not in the range x>=1"),
        (("--jobs", "many"), "--jobs: 'many' is not a valid integer range"),
        (("--timeout", "-3"), "--timeout: expected a positive number of seconds, got '-3'"),
        (("--timeout", "nan"), "--timeout: expected a positive number of seconds, got 'nan'"),
        (("--timeout", "inf"), "--timeout: expected a positive number of seconds, got 'inf'"),
        (("--budget", "0"), "--budget: expected a positive number of seconds, got '0'"),
        (("--budget", "soon"), "--budget: expected a positive number of seconds, got 'soon'"),
        (
            ("--device", "cuda:0"),
            "--device: probing on a CUDA device is not supported by this version;"
            " CUDA programs are run on the CPU",
        ),
        (("--device", "foo"), "--device: unknown device 'foo'; this version probes on cpu only"),
        (("--no-probe", "--probe=all"), "--no-probe and --probe contradict each other"),
        (("-q", "-v"), "--quiet and --verbose contradict each other"),
        (("--select", ""), "--select: names no rule"),
        (
            ("--select", "WL9", "--ignore", "WL9"),
            "all selected rules are ignored: --select and --ignore leave none",
        ),
        (("--entry", "gone.py --small"), "no such entry file: gone.py"),
        (("--entry", ""), "the entry is empty; it names a file and its arguments"),
        (("--entry", "."), "the entry . is a directory; name a Python file in it"),
        (("--entry", "-m"), "the entry '-m' names no module"),
        (
            ("--entry", "-m train.py"),
            "no such module: train.py, neither train/py.py nor a package with __main__",
        ),
        (
            ("--entry", "-m lib/train"),
            "the entry '-m lib/train' names no module; they are written package.module",
        ),
        (("--entry", "fit.ipynb"), "fit.ipynb: notebooks are read, not run; name a program as the entry"),
        (("--unsafe-fixes",), "--unsafe-fixes needs --fix or --diff"),
        (("--fix", "--shard", "1/2"), "--shard and fixes do not go together"),
        (
            ("--no-probe", "--fix"),
            "without the probe no fix can be verified; --unsafe-fixes takes those that were not",
        ),
        (("--entry", "'"), 'cannot split the entry "\'": No closing quotation'),
        (("--config", "gone.toml"), "no such configuration file: gone.toml"),
        (("--select",), "option '--select' requires an argument"),
        (("rule",), "missing argument 'RULE'"),
        (("rule", "WL999"), "unknown rule 'WL999'; `warplint rules` lists all"),
        (
            ("rule", "aliased-sate"),
            "unknown rule 'aliased-sate'; did you mean 'aliased-state'?",
        ),
        (("rules", "--format", "sarif"), "--format: 'sarif' is not one of 'text', 'json', 'markdown'"),
    ],
)
def test_the_call(project, stages, warplint, arguments, message):
    (project / "fit.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert error(warplint(*arguments)) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[tool.warplint]\nselct = ["WL1"]\n',
            "pyproject.toml: unknown key 'selct' in [tool.warplint]; did you mean 'select'?",
        ),
        (
            "[tool.warplint.probe]\ntime_out = 3\n",
            "pyproject.toml: unknown key 'time_out' in [tool.warplint.probe]; did you mean 'timeout'?",
        ),
        (
            "[tool.warplint]\ntimeout = 3\n",
            "pyproject.toml: unknown key 'timeout' in [tool.warplint]; 'timeout' belongs in the probe table",
        ),
        (
            "[tool.warplint]\nselect = 3\n",
            "pyproject.toml: tool.warplint.select: expected a list of strings, got a whole number",
        ),
        (
            '[tool.warplint]\nselect = ["WL1", 2]\n',
            "pyproject.toml: tool.warplint.select: expected a list of strings,"
            " got a list that holds a whole number",
        ),
        (
            '[tool.warplint]\nstrict = "yes"\n',
            "pyproject.toml: tool.warplint.strict: expected true or false, got a string",
        ),
        (
            "[tool.warplint.probe]\ntimeout = -1\n",
            "pyproject.toml: tool.warplint.probe.timeout: expected a positive number of seconds, got -1",
        ),
        (
            '[tool.warplint]\nstatic-fail-on = "low"\n',
            "pyproject.toml: tool.warplint.static-fail-on: 'low' is not one of very-high, high, never",
        ),
        (
            "[tool.warplint]\njobs = 0\n",
            "pyproject.toml: tool.warplint.jobs: expected at least 1, got 0",
        ),
        ("[tool]\nwarplint = 3\n", "pyproject.toml: tool.warplint: expected a table, got a whole number"),
        (
            '[tool.warplint.per-file-ignores]\n"a.py" = 3\n',
            "pyproject.toml: tool.warplint.per-file-ignores.'a.py': expected a list of strings,"
            " got a whole number",
        ),
        (
            '[tool.warplint]\nignore = ["WL77"]\n',
            "pyproject.toml: ignore: unknown rule 'WL77'; `warplint rules` lists all",
        ),
        (
            '[tool.warplint.probe]\nset = ["STEPS"]\n',
            "pyproject.toml: tool.warplint.probe.set: 'STEPS' is not of the form module.NAME=value",
        ),
        ("[tool.warplint\n", "pyproject.toml:1:15: not valid TOML: "),
        ("[tool.warplint]\nexclude = [", "pyproject.toml: not valid TOML: "),
    ],
)
def test_the_configuration(project, stages, warplint, text, message):
    (project / "pyproject.toml").write_text(text)
    assert error(warplint("--no-probe")).startswith(message)


def test_a_configuration_in_a_closed_directory(project, stages, warplint, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.is_file", refuse)
    message = "cannot read closed/pyproject.toml: permission denied"
    assert error(warplint("--config", "closed/pyproject.toml")) == message


def test_the_configuration_is_not_text(project, stages, warplint):
    (project / "warplint.toml").write_bytes(b"select = ['\xff']\n")
    assert error(warplint()) == "warplint.toml: not UTF-8 text (byte 11)"


def test_a_directory_that_is_gone(tmp_path, warplint, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert error(warplint()) == "cannot read the current directory: no such file or directory"
    assert warplint("--version").status == 0


def test_a_report_that_cannot_be_written(project, stages, warplint):
    (project / "report").write_text("")
    run = warplint("--no-probe", "--output-file", "report/x.json")
    assert error(run) == "cannot write report/x.json: report is not a directory"


def test_an_internal_error_is_one_line_and_a_traceback_only_on_request(project, monkeypatch, warplint):
    def broken(*arguments, **more):
        raise KeyError("x")

    monkeypatch.setattr("warplint.cli.stages.analyze", broken)
    assert error(warplint("--no-probe")) == "internal error: KeyError: 'x' (--verbose shows where)"
    with pytest.raises(KeyError):
        warplint("--no-probe", "--verbose")


def test_interrupted(project, monkeypatch, warplint):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("warplint.cli.stages.analyze", interrupted)
    run = warplint("--no-probe")
    assert (run.status, run.out, run.err) == (130, "", "warplint: interrupted\n")


def test_interrupted_by_a_signal(tmp_path):
    slow = "import time; import warplint.cli.main as m, warplint.cli.stages as s\n"
    slow += "s.analyze = lambda *a, **k: (print('started', flush=True), time.sleep(60))\n"
    slow += "m.run(['--no-probe', '.'])\n"
    child = subprocess.Popen(
        [sys.executable, "-c", slow], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "started\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (130, "", "warplint: interrupted\n")


@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGTERM, "2"), (signal.SIGHUP, "1")])
def test_a_signal_ends_the_probe_and_leaves_nothing(tmp_path, number, jobs):
    slow = r"""
import sys, warplint.cli.main as m, warplint.probe.plan as plan
from warplint.probe import sandbox
from warplint.probe.interpreter import Interpreter
from warplint.probe.scratch import Scratch

def probe_one(program, *rest):
    python = Interpreter(sys.executable, "", "", "", "")
    with Scratch(rest[1].root, rest[1].root) as scratch:
        sandbox.run(
            [sys.executable, "-c", "import os, time; os.write(REPORT, b'{}\\n'); time.sleep(60)".replace(
                "REPORT", "int(os.environ['WARPLINT_REPORT_FD'])")],
            scratch=scratch, environment=sandbox.program_environment(scratch, python),
            on_message=lambda message: print("started", flush=True),
        )
    raise SystemExit("unreachable")

plan._probe_program = probe_one
m.run(["--jobs", sys.argv[1], "."])
"""
    project, temporary = tmp_path / "project", tmp_path / "tmp"
    project.mkdir()
    temporary.mkdir()
    for name in ("a.py", "b.py"):
        (project / name).write_text(TRAIN)
    environment = {**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    child = subprocess.Popen(
        [sys.executable, "-c", slow, jobs],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(int(jobs)):
        assert child.stdout.readline() == "started\n"
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (128 + number, "", f"warplint: ended by {number.name}\n")
    assert list(temporary.iterdir()) == []


def command(*arguments: str) -> str:
    return " ".join([sys.executable, "-c", "'from warplint.cli.main import run; run()'", *arguments])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--no-probe . >&-", "cannot write to standard output: it is closed"),
        ("--no-probe . >/dev/full", "cannot write to standard output: no space left on device"),
        ("rules >/dev/full", "cannot write to standard output: no space left on device"),
        ("--version >/dev/full", "cannot write to standard output: no space left on device"),
    ],
)
def test_standard_output_that_takes_nothing(tmp_path, words, message):
    (tmp_path / "a.py").write_text("")
    done = subprocess.run(
        ["bash", "-c", command(words)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (2, f"warplint: error: {message}\n")


def test_closed_streams_do_not_matter_to_a_report_in_a_file(tmp_path):
    (tmp_path / "a.py").write_text("")
    words = "--no-probe --output-file out.json --format json <&- >&- 2>&-"
    done = subprocess.run(["bash", "-c", command(words)], cwd=tmp_path, timeout=60)
    assert done.returncode == 0
    assert (tmp_path / "out.json").read_text().startswith("{")


def test_control_characters_do_not_break_the_line(project, stages, warplint):
    (project / "tra\nin.py").write_text(TRAIN)
    assert error(warplint("--entry", "go\x1bne.py")) == "no such entry file: go\\x1bne.py"
    stages.rows = (row(ProgramStatus.BLOCKED, "raised ValueError: oops\nsecond line"),)
    run = warplint()
    assert run.err.count("\n") == 1
    assert "oops\\nsecond line" in run.err


@pytest.mark.parametrize(("python", "why"), [("nowhere/python", "no such Python interpreter")])
def test_a_named_interpreter_must_do(project, stages, warplint, monkeypatch, python, why):
    monkeypatch.setattr("warplint.cli.stages.probe", REAL_PROBE)
    assert error(warplint("--python", python)) == f"--python: {python}: {why}"
    (project / "warplint.toml").write_text(f'[probe]\npython = "{python}"\n')
    assert error(warplint()) == f"--python: {project / python}: {why}"
    assert warplint("--no-probe", "--python", python, "--exit-zero").status == 0
    (project / "train.py").write_text("print()\n")
    stages.findings = ()
    assert warplint("--python", python).status == 0


def test_an_interpreter_without_warp_is_a_failed_call(project, stages, warplint, monkeypatch):
    from warplint.probe import interpreter

    monkeypatch.setattr("warplint.cli.stages.probe", REAL_PROBE)
    monkeypatch.setattr(interpreter, "_ask", lambda path, origin: "cannot import warp")
    assert error(warplint("--python", sys.executable)) == f"--python: {sys.executable}: cannot import warp"


def test_a_device_of_the_configuration(project, stages, warplint):
    (project / "warplint.toml").write_text('[probe]\ndevice = "tpu"\n')
    assert error(warplint()) == (
        "configuration: probe.device: unknown device 'tpu'; this version probes on cpu only"
    )


def test_a_reader_that_goes_away_is_no_error(repository):
    command = f"{sys.executable} -c 'from warplint.cli.main import run; run()' rule WL101 | head -c 5"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        timeout=60,
    )
    assert done.stdout == "WL101"
    assert done.stderr == ""


def test_output_survives_a_terminal_without_unicode(tmp_path):
    (tmp_path / "café.py").write_text("import warp\ndef (\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from warplint.cli.main import run; run()", "--no-probe", "café.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert "caf\\xe9.py:2" in done.stdout
    assert done.returncode == 1
