"""Programs that misbehave: each ends with a true reason, in time, and harms nothing.

Every program is bounded by itself (a few dozen forks, some megabytes), so that a failure of the
isolation cannot harm the machine the tests run on.
"""

from __future__ import annotations

import functools
import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from warplint.model import Program, ProgramRow
from warplint.probe import ProbeSettings, probe, session
from warplint.probe.sandbox import Limits

pytestmark = pytest.mark.probe

FIT = """
import os, sys, time
import numpy as np
import warp as wp

@wp.kernel
def misfit(x: wp.array(dtype=float), t: float, loss: wp.array(dtype=float)):
    d = x[wp.tid()] - t
    wp.atomic_add(loss, 0, d * d)

def turn(it):
    pass

{before}

x = wp.array([0.5, 1.0], dtype=float, requires_grad=True)
for it in range(3):
    turn(it)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [x, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()

{after}
"""

SECONDS = 12.0
"""For programs that never come to an end."""
PATIENCE = 90.0
"""For programs that do: kernels may have to be compiled on a busy machine."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project that must come out as it went in."""
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "data" / "keep.txt").write_text("precious")
    (root / "good.py").write_text(FIT.format(before="", after=""))
    monkeypatch.setattr(session, "Limits", functools.partial(Limits, memory=1 << 30))
    mark = uuid.uuid4().hex
    os.environ["HOSTILE_TEST"] = mark
    yield root
    del os.environ["HOSTILE_TEST"]
    assert (root / "data" / "keep.txt").read_text() == "precious"
    assert sorted(p.name for p in root.iterdir()) == ["data", "good.py", "program.py"]
    deadline = time.monotonic() + 5
    while left := _living(mark):
        assert time.monotonic() < deadline, f"processes are left: {left}"
        time.sleep(0.05)


def _living(mark: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                environment = Path("/proc", name, "environ").read_bytes()
            except OSError:
                continue
            if f"HOSTILE_TEST={mark}".encode() in environment:
                found.append(int(name))
    return found


def probed(project: Path, *, before: str = "", after: str = "", seconds: float = PATIENCE) -> ProgramRow:
    """The row of a hostile program; the good one beside it must come out as ever."""
    (project / "program.py").write_text(FIT.format(before=before, after=after))
    rows = {}
    for name, limit in (("program.py", seconds), ("good.py", PATIENCE)):
        settings = ProbeSettings(root=project, timeout=limit, evidence=False)
        began = time.monotonic()
        (rows[name],) = probe([Program(name, closure=(name,))], [], settings).programs
        assert time.monotonic() - began < 2 * limit
    assert rows["good.py"].status.value == "verified", rows["good.py"].reason
    return rows["program.py"]


BLOCKED = {
    "an endless loop at import": ("while True: pass", "timed out"),
    "sys.exit at import": ("sys.exit('no display')", "exited"),
    "a segmentation fault": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    "memory without end": ("held = [b'x' * (1 << 26) for _ in range(40)]", "memory"),
    "removing the project": (
        "import shutil\nos.chdir(os.path.dirname(os.path.abspath(__file__)))\nshutil.rmtree('.')",
        "OSError",
    ),
    "forking": (
        "for _ in range(7):\n    os.fork()\nwhile True: time.sleep(1)",
        "timed out|processes|killed|memory",
    ),
    "output without end": (
        "while True: os.write(1, b'x' * 65536)",
        "timed out",
    ),
    "input()": ("input('continue? ')", "EOFError"),
    "ignoring SIGTERM": (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)",
        "timed out",
    ),
    "a child that goes on when its parent is gone": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(60)\n"
        "    os._exit(0)\ntime.sleep(60)",
        "timed out",
    ),
}


@pytest.mark.parametrize("kind", BLOCKED)
def test_blocked_with_a_true_reason(kind: str, project: Path) -> None:
    before, reason = BLOCKED[kind]
    row = probed(project, before=before, seconds=SECONDS)
    assert row.status.value == "blocked"
    assert any(word in (row.reason or "") for word in reason.split("|")), row.reason


HARMLESS = {
    "an exception in the third iteration": (
        "def turn(it):\n    if it == 2:\n        raise ValueError('diverged')",
        "",
    ),
    "threads that keep running": (
        "import threading\nthreading.Thread(target=lambda: time.sleep(600)).start()",
        "",
    ),
    "writing over its own data": ("", "open('data/keep.txt', 'w').write('gone')"),
    "patching warp itself": (
        "launch = wp.launch\nwp.launch = lambda *a, **k: launch(*a, **k)",
        "",
    ),
    "exiting in the end": ("", "os._exit(3)"),
}


@pytest.mark.parametrize("kind", HARMLESS)
def test_measured_all_the_same(kind: str, project: Path) -> None:
    before, after = HARMLESS[kind]
    row = probed(project, before=before, after=after)
    assert row.status.value == "verified", row.reason


def test_a_socket_reaches_nobody(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        before = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=2)"
        row = probed(project, before=before)
        assert row.status.value == "blocked"
        with pytest.raises(TimeoutError):
            server.accept()


def test_launches_that_come_and_go_are_never_called_wrong(project: Path) -> None:
    (project / "program.py").write_text(
        FIT.format(before="", after="").replace(
            "wp.launch(misfit, 2, [x, 2.0], [loss])",
            "for _ in range(1 + time.time_ns() // 1000 % 7):\n"
            "            wp.launch(misfit, 2, [x, 2.0], [loss])",
        )
    )
    settings = ProbeSettings(root=project, timeout=PATIENCE, evidence=False)
    (row,) = probe([Program("program.py", closure=("program.py",))], [], settings).programs
    # Where the numbers happen to meet it is right; it is never called wrong.
    assert row.status.value in ("inconclusive", "verified"), row.reason
