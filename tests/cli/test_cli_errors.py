"""Every mistake in a call is one line about that mistake, and exit status 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest


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
        (("--frobnicate",), "unknown option --frobnicate; see `warplint --help`"),
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
        (("--timeout", "-3"), "--timeout: -3.0 is not in the range x>0"),
        (("--entry", "gone.py --small"), "no such entry file: gone.py"),
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
    ],
)
def test_the_configuration(project, stages, warplint, text, message):
    (project / "pyproject.toml").write_text(text)
    assert error(warplint("--no-probe")).startswith(message)


def test_the_configuration_is_not_text(project, stages, warplint):
    (project / "warplint.toml").write_bytes(b"select = ['\xff']\n")
    assert error(warplint()) == "warplint.toml: not UTF-8 text (byte 11)"


def test_a_report_that_cannot_be_written(project, stages, warplint):
    (project / "report").write_text("")
    run = warplint("--no-probe", "--output-file", "report/x.json")
    assert error(run) == "cannot write report/x.json: file exists"


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
