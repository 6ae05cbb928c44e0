"""The process table, read from ``/proc``: a process, everything below it, its memory, its end.

Used by the supervisor alone, so the standard library and Python 3.9 have to do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from dataclasses import dataclass

READABLE = os.path.exists("/proc/self/stat")


@dataclass(frozen=True)
class Process:
    """One line of the process table; ``started`` tells a process from a later namesake."""

    pid: int
    parent: int
    state: str
    started: str
    resident: int


def read_process(pid: int) -> Process | None:
    """The process ``pid`` as it is now, None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            text = stream.read().decode("ascii", "replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold anything, further parentheses included.
    fields = text[text.rfind(")") + 2 :].split()
    if len(fields) < 22:
        return None
    pages = int(fields[21])
    return Process(pid, int(fields[1]), fields[0], fields[19], pages * os.sysconf("SC_PAGE_SIZE"))


def descendants(root: int) -> list[Process]:
    """Every living process below ``root``, parents before children."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = read_process(int(name))
            if process is not None:
                children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = [root]
    while queue:
        for child in children.get(queue.pop(), []):
            queue.append(child.pid)
            if child.state not in "ZX":
                found.append(child)
    return found


def proportional_memory(process: Process) -> int:
    """Memory of a process with shared pages divided among their users (forks share most)."""
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", "rb") as stream:
            for line in stream:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return process.resident


def available_memory() -> int | None:
    """What the machine has left, in bytes."""
    try:
        with open("/proc/meminfo", "rb") as stream:
            for line in stream:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def send(process: Process, number: int) -> None:
    """Signal exactly this process, never a later one with the same number."""
    with contextlib.suppress(OSError):
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            handle = os.pidfd_open(process.pid)
            try:
                now = read_process(process.pid)
                if now is not None and now.started == process.started:
                    signal.pidfd_send_signal(handle, number)
                return
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    return
            finally:
                os.close(handle)
        now = read_process(process.pid)
        if now is not None and now.started == process.started:
            os.kill(process.pid, number)
