"""The same work on many items, in several processes where that pays.

The processes are forks: they start with everything that has been read so far, and only results
travel. Which process does what never shows: results come back in the order of the items, and what
a process leaves undone is done here.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["available", "run_all"]

_NUMBER = struct.Struct("<I")
_SIZE = struct.Struct("<IQ")
_MAX_TASKS = 8_000
"""What fits into a pipe at once."""


def available() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(task: Callable[[int], Any], count: int, jobs: int) -> list[Any]:
    """``[task(0), …, task(count - 1)]``, with up to ``jobs`` processes."""
    jobs = min(jobs, count)
    if jobs < 2 or count > _MAX_TASKS or not hasattr(os, "fork"):
        return [task(number) for number in range(count)]
    results = _in_processes(task, count, jobs)
    return [results[number] if number in results else task(number) for number in range(count)]


def _in_processes(task: Callable[[int], Any], count: int, jobs: int) -> dict[int, Any]:
    queue, feed = os.pipe()
    children: list[int] = []
    ends: dict[int, bytearray] = {}
    try:
        os.write(feed, b"".join(_NUMBER.pack(number) for number in range(count)))
        for _ in range(jobs):
            end, answers = os.pipe()
            ends[end] = bytearray()
            child = os.fork()
            if child == 0:
                os.close(feed)
                _work(task, queue, answers)
            os.close(answers)
            children.append(child)
        os.close(feed)
        feed = -1
        return _collect(ends)
    except OSError:
        return {}
    except BaseException:
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        raise
    finally:
        for descriptor in (queue, feed, *ends):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        for child in children:
            with contextlib.suppress(OSError):
                os.waitpid(child, 0)


def _work(task: Callable[[int], Any], queue: int, answers: int) -> None:
    """The life of a child: take a number, do the task, send the result."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # The parent decides when it is over: it ends its children.
            signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        with os.fdopen(answers, "wb") as out:
            while raw := os.read(queue, _NUMBER.size):
                (item,) = _NUMBER.unpack(raw)
                payload = pickle.dumps(task(item), pickle.HIGHEST_PROTOCOL)
                out.write(_SIZE.pack(item, len(payload)) + payload)
                out.flush()
        status = 0
    finally:
        os._exit(status)


def _collect(ends: dict[int, bytearray]) -> dict[int, Any]:
    results: dict[int, Any] = {}
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                end = key.fd
                data = os.read(end, 1 << 20)
                if not data:
                    selector.unregister(end)
                    continue
                buffer = ends[end]
                buffer += data
                while len(buffer) >= _SIZE.size:
                    item, size = _SIZE.unpack_from(buffer)
                    stop = _SIZE.size + size
                    if len(buffer) < stop:
                        break
                    results[item] = pickle.loads(buffer[_SIZE.size : stop])
                    del buffer[:stop]
    return results
