"""Messages arrive while the program runs; whatever else comes down the pipe does no harm."""

from __future__ import annotations

import time

import pytest
from isolation_support import Project

from warplint.probe import sandbox

HEAD = """
import json, os, time
fd = int(os.environ['WARPLINT_REPORT_FD'])
def tell(data):
    while data:
        data = data[os.write(fd, data):]
"""


def test_messages_arrive_while_it_runs(project: Project) -> None:
    arrived: list[float] = []
    began = time.monotonic()
    project.run(
        HEAD + "tell(b'{\"n\": 1}\\n'); time.sleep(1.5)",
        on_message=lambda message: arrived.append(time.monotonic() - began),
    )
    assert len(arrived) == 1
    assert time.monotonic() - began - arrived[0] > 1


def test_last_messages_of_a_crash_arrive(project: Project, layers: tuple[str, ...]) -> None:
    program = HEAD + "tell(b''.join(b'{\"n\": %d}\\n' % i for i in range(2000)))\nos.abort()"
    outcome = project.run(program, without=layers)
    assert outcome.signal == "SIGABRT"
    assert [message["n"] for message in project.messages] == list(range(2000))


def test_stop_ends_the_run(project: Project, layers: tuple[str, ...]) -> None:
    seen = []

    def stop_at_three(message: dict[str, int]) -> str | None:
        seen.append(message["n"])
        return "stop" if message["n"] == 3 else None

    program = HEAD + "n = 0\nwhile True:\n    n += 1\n    tell(b'{\"n\": %d}\\n' % n)"
    outcome = project.run(program, without=layers, on_message=stop_at_three)
    assert seen == [1, 2, 3]
    assert (outcome.kind, outcome.detail) == ("finished", "stopped")
    assert outcome.seconds < 5


def test_an_exception_of_the_listener_ends_the_run(project: Project, layers: tuple[str, ...]) -> None:
    def interrupt(message: object) -> None:
        raise KeyboardInterrupt

    program = HEAD + "tell(b'{\"n\": 1}\\n')\nif os.fork() == 0: os.setsid()\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        project.run(program, without=layers, on_message=interrupt)


def test_garbage_is_dropped_and_counted(project: Project) -> None:
    program = (
        HEAD
        + r"""
tell(b'{"n": 1}\n')
tell(b'\xff\xfe garbage\n[1, 2]\nnull\n{"open": \n\n')
tell(b'[' * 200_000 + b'\n')
tell(b'{"a":' * 200_000 + b'\n')
tell(b'1' * 100_000 + b'\n')
tell(b'{"n": 2}\n{"cut off": ')
"""
    )
    outcome = project.run(program)
    assert [message["n"] for message in project.messages] == [1, 2]
    assert outcome.kind == "finished"
    assert outcome.dropped == 9


def test_huge_lines_are_dropped(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "LONGEST_LINE", 1 << 20)
    program = HEAD + "tell(b'{\"n\": \"' + b'x' * (5 << 20) + b'\"}\\n{\"n\": 2}\\n')"
    outcome = project.run(program)
    assert project.messages == [{"n": 2}]
    assert outcome.dropped == 1


def test_closed_report_pipe(project: Project) -> None:
    outcome = project.run(HEAD + "os.close(fd); print('still here')")
    assert (outcome.kind, outcome.tail) == ("finished", "still here\n")


def test_only_the_report_pipe_is_inherited(project: Project, layers: tuple[str, ...]) -> None:
    program = (
        HEAD
        + """
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
print([n for n in range(256) if is_open(n)] == [0, 1, 2, fd])
"""
    )
    assert project.run(program, without=layers).tail == "True\n"
