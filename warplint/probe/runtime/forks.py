"""Children that report once through a pipe and leave by ``os._exit``, always.

A child that left by an exception would run the user's ``finally`` blocks, flush the parent's
buffers and delete the precompiled header the parent still needs.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import time
from collections.abc import Callable
from typing import Any

from . import pinning

_HEADER = struct.Struct("<Q")


class ChildFailure(Exception):  # noqa: N818  (reads as what happened)
    """A child that died or hung instead of reporting: ``reason`` says how."""

    def __init__(self, reason: str, *, hung: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hung = hung


class Reporter:
    """The child's end: one report, then the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def leave(self, report: Any) -> None:
        """Sends ``report`` and ends this process; never returns."""
        try:
            data = pickle.dumps(report, protocol=4)
            view = memoryview(_HEADER.pack(len(data)) + data)
            while view:
                view = view[os.write(self._fd, view) :]
        finally:
            os._exit(0)


class BecomeChild(BaseException):
    """Raised in a freshly forked child to unwind to the hook, from where user code goes on."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self.reporter = reporter


def fork(deadline: float) -> Any:
    """Forks. In the child raises :class:`BecomeChild`; in the parent returns the report.

    Raises ChildFailure when the child dies or does not report before ``deadline`` (monotonic).
    """
    state = pinning.snapshot()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.close(null)
        pinning.restore(state)
        pinning.separate_files()
        raise BecomeChild(Reporter(write_end))
    os.close(write_end)
    try:
        data = _receive(read_end, deadline)
    except ChildFailure:
        _reap(pid, kill=True)
        raise
    finally:
        os.close(read_end)
    status = _reap(pid, kill=False)
    if data is None:
        raise ChildFailure(describe_status(status))
    return pickle.loads(data)


def run_in_child(work: Callable[[Reporter], None], deadline: float) -> Any:
    """Runs ``work`` in a child from here; it must end by ``reporter.leave``."""
    try:
        return fork(deadline)
    except BecomeChild as child:
        reporter = child.reporter
    try:
        work(reporter)
    except BaseException as error:
        reporter.leave({"error": f"{type(error).__name__}: {error}"})
    os._exit(70)


def _receive(fd: int, deadline: float) -> bytes | None:
    buffer = bytearray()
    expected: int | None = None
    while expected is None or len(buffer) < expected:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise ChildFailure("hung: no report before its deadline", hung=True)
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            return None
        buffer += chunk
        if expected is None and len(buffer) >= _HEADER.size:
            expected = _HEADER.unpack_from(buffer)[0]
            del buffer[: _HEADER.size]
    return bytes(buffer)


def _reap(pid: int, *, kill: bool) -> int:
    if kill:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:  # the program reaps all children itself
        return 0


def describe_status(status: int) -> str:
    """How a child ended, in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = str(number)
        return f"killed by {name}"
    return f"exited with status {os.WEXITSTATUS(status)} before it reported"
