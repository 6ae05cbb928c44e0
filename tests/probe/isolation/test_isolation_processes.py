"""No process outlives its run, and none outside it is touched."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from isolation_support import ALL, BARE, NO_NAMESPACES, QUICK, Project, linux, processes_with

from warplint.probe import scratch as module

pytestmark = linux
SHORT = dataclasses.replace(QUICK, seconds=1.0)


def test_fork_bomb(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os, time
        for _ in range(200):
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
        time.sleep(30)
    """
    outcome = project.run(program, without=layers)
    assert outcome.kind == "processes"
    assert outcome.detail == "started more than 40 processes"
    assert outcome.survivors == 0


def test_fork_bomb_of_forking_children(project: Project, layers: tuple[str, ...]) -> None:
    # Every child forks on; a shared counter keeps the bomb to 200 forks whatever happens.
    program = """
        import ctypes, mmap, os, time
        shared = mmap.mmap(-1, 4096)
        def forked():
            with open(gate, 'r+b') as stream:
                import fcntl
                fcntl.flock(stream, fcntl.LOCK_EX)
                count = int.from_bytes(shared[:4], 'little') + 1
                shared[:4] = count.to_bytes(4, 'little')
                return count
        gate = os.path.abspath('gate')
        open(gate, 'w').close()
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if forked() <= 200:
                os.fork()
            else:
                time.sleep(0.5)
    """
    outcome = project.run(program, without=layers)
    assert outcome.kind == "processes"
    assert outcome.survivors == 0


def test_daemon(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os, signal, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                os.chdir('/')
                for fd in range(3):
                    os.close(fd)
                time.sleep(60)
            os._exit(0)
        os.wait()
        print('daemon started')
    """
    outcome = project.run(program, without=layers)
    assert outcome.kind == "finished"
    assert outcome.tail == "daemon started\n"
    assert outcome.seconds < 10


def test_child_that_holds_the_pipes(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
        print('parent ends')
    """
    outcome = project.run(program, without=layers)
    assert (outcome.kind, outcome.tail) == ("finished", "parent ends\n")
    assert outcome.seconds < 10


@pytest.mark.parametrize("layers", [ALL, NO_NAMESPACES], ids=["all", "no-namespaces"])
def test_signals_do_not_leave(project: Project, layers: tuple[str, ...]) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as bystander:
        project.extra["VICTIM"] = str(bystander.pid)
        program = """
            import os, signal
            for pid in (int(os.environ['VICTIM']), os.getppid()):
                try:
                    os.kill(pid, signal.SIGKILL)
                    print('sent')
                except OSError as error:
                    print(type(error).__name__)
        """
        outcome = project.run(program, without=layers)
        alive = bystander.poll() is None
        bystander.kill()
    if "signals confined by landlock" not in outcome.confined and layers == NO_NAMESPACES:
        pytest.skip("the kernel cannot confine signals")
    assert alive
    assert outcome.kind == "finished"
    assert "sent" not in outcome.tail.splitlines()[0]


def test_supervisor_killed_by_the_program(project: Project) -> None:
    program = """
        import os, signal, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    """
    outcome = project.run(program, without=BARE)
    assert (outcome.kind, outcome.detail) == ("failed", "the supervisor was killed")


STAND_IN = """
import os, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from isolation_support import HERE, QUICK
from warplint.probe import sandbox
from warplint.probe.scratch import Scratch
root = Path({root!r})
with Scratch(root, root) as scratch:
    print(scratch.base, flush=True)
    sandbox.run(
        [sys.executable, str(scratch.to_scratch(root / "program.py"))],
        scratch=scratch,
        environment={{**sandbox.program_environment(scratch, HERE),
                     "ISOLATION_TEST": {mark!r}, "WARPLINT_PID": str(os.getpid())}},
        limits=QUICK,
        on_message=lambda message: print("running", flush=True),
        without={without!r},
    )
"""

LASTING = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
os.write(int(os.environ['WARPLINT_REPORT_FD']), b'{"running": true}\\n')
time.sleep(60)
"""


def _start_stand_in(project: Project, program: str, without: tuple[str, ...]) -> subprocess.Popen[str]:
    project.program.write_text(textwrap.dedent(program))
    script = STAND_IN.format(
        here=str(Path(__file__).parent), root=str(project.root), mark=project.mark, without=without
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_warplint_killed(project: Project, layers: tuple[str, ...], number: int) -> None:
    with _start_stand_in(project, LASTING, layers) as stand_in:
        assert stand_in.stdout is not None
        scratch = Path(stand_in.stdout.readline().strip())
        assert stand_in.stdout.readline() == "running\n"
        stand_in.send_signal(number)
        stand_in.wait(10)
    project.assert_no_process()
    if number == signal.SIGINT:
        assert not scratch.exists()
    else:
        _assert_removed_later(scratch)


def test_program_that_kills_warplint(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os, signal, time
        os.write(int(os.environ['WARPLINT_REPORT_FD']), b'{"running": true}\\n')
        try:
            os.kill(int(os.environ['WARPLINT_PID']), signal.SIGKILL)
        except OSError:
            pass
    """
    with _start_stand_in(project, program, layers) as stand_in:
        assert stand_in.stdout is not None
        scratch = Path(stand_in.stdout.readline().strip())
        status = stand_in.wait(20)
    project.assert_no_process()
    if layers == BARE:
        assert status in (0, -signal.SIGKILL)  # cannot be prevented; harmless
        _assert_removed_later(scratch)
    else:
        assert status == 0
        assert not scratch.exists()


def _assert_removed_later(scratch: Path) -> None:
    """A killed run leaves its scratch; the next run that starts removes it."""
    if scratch.exists():
        os.utime(scratch, (time.time() - 3600, time.time() - 3600))
        module._remove_stale()
    assert not scratch.exists()


def test_stale_scratch_of_another_run_is_kept_while_it_lives(project: Project) -> None:
    with module.Scratch(project.root, project.root) as living:
        os.utime(living.base, (time.time() - 3600, time.time() - 3600))
        module._remove_stale()
        assert (living.tree / "helper.py").exists()


def test_mark_is_in_every_process(project: Project) -> None:
    seen: list[int] = []

    def look(message: dict[str, object]) -> str:
        deadline = time.monotonic() + 5
        while len(seen) < 2 and time.monotonic() < deadline:  # the middle child comes and goes
            seen[:] = processes_with("WARPLINT_RUN=")
        return "stop"

    outcome = project.run(LASTING, on_message=look)
    assert len(seen) >= 2
    assert (outcome.kind, outcome.detail) == ("finished", "stopped")
