"""A small project, a way to run a program in it, and a check that nothing was left behind."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from warplint.probe import sandbox
from warplint.probe.interpreter import Interpreter
from warplint.probe.runtime import confine
from warplint.probe.sandbox import Limits, Outcome
from warplint.probe.scratch import Scratch

HERE = Interpreter(sys.executable, "3", "1.19.0", "2", "the tests")
QUICK = Limits(seconds=20, memory=1 << 30, processes=40, file_size=64 << 20)

ALL: tuple[str, ...] = ()
NO_NAMESPACES = ("namespaces",)
BARE = ("namespaces", "landlock", "seccomp")
"""Layers taken away: nothing; what an ordinary container lacks; what an old kernel lacks."""

needs_landlock = pytest.mark.skipif(not confine.landlock_abi(), reason="the kernel has no Landlock")
linux = pytest.mark.skipif(not confine.LINUX, reason="needs /proc")


def picture(tree: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, time and content of every file of a tree, to see whether anything changed."""
    seen = {}
    for path in sorted([tree, *tree.rglob("*")]):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        seen[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return seen


def processes_with(text: str) -> list[int]:
    """Processes whose environment holds ``text``."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                environment = Path("/proc", name, "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in environment:
                found.append(int(name))
    return found


class Project:
    """A project with one program; ``run`` runs it in a scratch and checks what is left."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.program = root / "program.py"
        self.mark = uuid.uuid4().hex
        self.messages: list[dict[str, Any]] = []
        self.extra: dict[str, str] = {}

    def run(
        self,
        text: str,
        *,
        limits: Limits = QUICK,
        without: tuple[str, ...] = ALL,
        on_message: Callable[[dict[str, Any]], object] | None = None,
    ) -> Outcome:
        self.program.write_text(textwrap.dedent(text))
        before = picture(self.root)
        scratch = Scratch(self.root, self.root)
        try:
            with scratch:
                return sandbox.run(
                    [sys.executable, str(scratch.to_scratch(self.program))],
                    scratch=scratch,
                    environment=self.environment(scratch),
                    limits=limits,
                    on_message=on_message or self.messages.append,
                    without=without,
                )
        finally:
            assert not scratch.base.exists()
            assert picture(self.root) == before
            self.assert_no_process()

    def environment(self, scratch: Scratch) -> dict[str, str]:
        environment = sandbox.program_environment(scratch, HERE)
        return {
            **environment,
            "ISOLATION_TEST": self.mark,
            "ORIGINAL": str(self.root),
            **self.extra,
        }

    def assert_no_process(self) -> None:
        if confine.LINUX:
            deadline = time.monotonic() + 5
            while processes_with(self.mark):
                assert time.monotonic() < deadline, "a process is left"
                time.sleep(0.02)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("WARP_CACHE_PATH", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "data" / "input.txt").write_text("precious\n")
    (root / "helper.py").write_text("VALUE = 7\n")
    before = set(os.listdir(tempfile.gettempdir()))
    yield Project(root)
    left = {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("warplint-")} - before
    assert not {name for name in left if _mine(name)}


def _mine(name: str) -> bool:
    """Whether a scratch in the temp directory is of this process (others may be running)."""
    lock = Path(tempfile.gettempdir(), name, "lock")
    return lock.exists() and any(
        os.path.realpath(f"/proc/self/fd/{fd}") == str(lock) for fd in os.listdir("/proc/self/fd")
    )


@pytest.fixture(params=[ALL, NO_NAMESPACES, BARE], ids=["all", "no-namespaces", "bare"])
def layers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The layers of the confinement that are taken away."""
    return request.param
