"""Help, completion, and commands that were almost right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from warplint.cli.commands import cli


@pytest.mark.parametrize("words", [(), *((name,) for name in sorted(cli.commands))], ids=" ".join)
def test_help_fits_a_screen(warplint, words):
    run = warplint(*words, "--help")
    lines = run.out.splitlines()
    assert (run.status, run.err) == (0, "")
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert run.out == warplint(*words, "-h").out


def test_every_option_of_check_is_explained_on_a_line_of_its_own(warplint):
    lines = warplint("check", "--help").out.splitlines()
    for option in cli.commands["check"].params:
        if not getattr(option, "hidden", True):
            (line,) = [
                line
                for line in lines
                if line.lstrip().startswith(("-q, ", "-v, ", option.opts[-1]))
                and option.opts[-1] in line.replace("[", " ").split()
            ]
            assert line.rstrip().endswith(option.help)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("chek", "."), "no such file or directory: chek; did you mean the command 'check'?"),
        (("grpah", "a.py"), "no such file or directory: grpah; did you mean the command 'graph'?"),
        (("train.py", "gaph"), "no such file or directory: gaph"),
        (("rule", "--formt", "json", "WL1"), "unknown option --formt; did you mean --format?"),
        (("graph", "--frobnicate", "a.py"), "unknown option --frobnicate; see `warplint graph --help`"),
        (("graph",), "missing argument 'PROGRAM'"),
        (("completion",), "missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish"),
        (("completion", "tcsh"), "shell: 'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_almost_right(project, stages, warplint, words, message):
    run = warplint(*words)
    assert (run.status, run.out) == (2, "")
    assert " ".join(run.err.split()) == f"warplint: error: {message}"


def complete(monkeypatch, warplint, line: str) -> set[str]:
    """What bash is told at the end of a line."""
    words = line.split(" ")
    monkeypatch.setenv("_WARPLINT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    return set(warplint().out.split())


def test_completion(monkeypatch, warplint):
    def at(line: str) -> set[str]:
        return complete(monkeypatch, warplint, line)

    assert {"plain,check", "plain,graph", "plain,rules"} <= at("warplint ")
    assert at("warplint gr") == {"plain,graph", "file,gr"}
    # The command that need not be named.
    assert {"plain,--select", "plain,--set"} <= at("warplint --se")
    assert at("warplint check --changed") == {"plain,--changed-since"}
    assert at("warplint --format s") == {"plain,sarif"}
    assert at("warplint --select WL90") == {"plain,WL901", "plain,WL902", "plain,WL903", "plain,WL904"}
    assert at("warplint --ignore WL101,ping") == {"plain,WL101,ping-pong-buffers"}
    assert at("warplint rule aliased") == {"plain,aliased-state"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell, warplint):
    run = warplint("completion", shell)
    assert run.status == 0
    assert f"_WARPLINT_COMPLETE={shell}_complete" in run.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=run.out, text=True, check=True)


def test_bash_completes_a_line(tmp_path):
    """The whole way: the script is loaded and its function is called as readline calls it."""
    command = tmp_path / "warplint"
    command.write_text(f"#!{sys.executable}\nfrom warplint.cli.main import run\nrun()\n")
    command.chmod(0o755)
    lines = (
        'shopt -s expand_aliases; complete() { :; }; eval "$(warplint completion bash)"',
        "COMP_WORDS=(warplint rule sing); COMP_CWORD=2",
        '_warplint_completion warplint; echo "${COMPREPLY[@]}"',
    )
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, env=environment, timeout=60
    )
    assert (done.stdout, done.stderr) == ("singular-point\n", "")
