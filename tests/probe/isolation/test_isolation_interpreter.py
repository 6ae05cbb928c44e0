"""Which Python is chosen, and what is said when none will do."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
from isolation_support import HERE

from warplint.probe import interpreter
from warplint.probe.interpreter import Interpreter, NoInterpreter, choose


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    interpreter._ask.cache_clear()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Pretend interpreters: which prefixes have Warp."""
    with_warp: dict[str, bool] = {}

    def ask(path: str, origin: str) -> Interpreter | str:
        if with_warp.get(path, False):
            return dataclasses.replace(HERE, path=path, origin=origin)
        return "cannot import warp"

    monkeypatch.setattr(interpreter, "_ask", ask)
    return with_warp


def environment(prefix: Path) -> str:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("")
    python = prefix / "bin" / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return str(python)


def test_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, bool]) -> None:
    root = tmp_path / "project"
    program = root / "examples" / "fit.py"
    program.parent.mkdir(parents=True)
    active, own, conda = (
        environment(tmp_path / "active"),
        environment(root / ".venv"),
        environment(tmp_path / "conda"),
    )
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    order = [active, own, conda, sys.executable]
    for path in order:
        answers[path] = True
    for path in order:
        assert choose(program, None, root).path == path
        answers[path] = False
    with pytest.raises(NoInterpreter) as caught:
        choose(program, None, root)
    message = str(caught.value)
    assert "\n" not in message
    for path in order:
        assert f"({path}): cannot import warp" in message


def test_environment_above_the_root_is_not_taken(tmp_path: Path, answers: dict[str, bool]) -> None:
    answers[environment(tmp_path / ".venv")] = True
    root = tmp_path / "project"
    root.mkdir()
    with pytest.raises(NoInterpreter):
        choose(root / "fit.py", None, root)


def test_explicit_is_taken_or_refused(tmp_path: Path, answers: dict[str, bool]) -> None:
    answers[sys.executable] = True
    with pytest.raises(NoInterpreter, match="no such Python interpreter"):
        choose(tmp_path / "a.py", str(tmp_path / "none"), tmp_path)
    bad = environment(tmp_path / "bad")
    with pytest.raises(NoInterpreter, match="cannot import warp") as caught:
        choose(tmp_path / "a.py", bad, tmp_path)
    assert bad in str(caught.value)


def test_asks_a_real_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("warp")
    found = choose(tmp_path / "a.py", sys.executable, tmp_path)
    assert found.path == sys.executable
    assert found.python.startswith("3.")
    assert found.warp[0].isdigit()
    assert found.numpy[0].isdigit()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("exit 0", "does not answer as a Python interpreter should"),
        ('echo \'{"python": "3.8.1", "warp": "1.19.0", "numpy": "2"}\'', "is Python 3.8.1, not 3.9 or newer"),
        ('echo \'{"python": "3.12.1", "warp": null, "numpy": "2"}\'', "cannot import warp"),
        ('echo \'{"python": "3.12.1", "warp": "1.19.0", "numpy": null}\'', "cannot import numpy"),
    ],
)
def test_answers_that_will_not_do(tmp_path: Path, text: str, answer: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{text}\n")
    python.chmod(0o755)
    assert interpreter._ask(str(python), "a test") == answer


def test_other_versions_of_warp_are_noted() -> None:
    assert HERE.note is None
    for version in ("1.12.1", "1.20.0", "2.0.0", "strange"):
        note = dataclasses.replace(HERE, warp=version).note
        assert note is not None
        assert version in note
