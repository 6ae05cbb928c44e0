"""Run one command under limits and end everything it started, whatever it does.

A script of its own (standard library, Python 3.9+), started by ``warplint.probe.sandbox``:

- the first line of standard input is a JSON object (see ``Order``); a line ``stop`` after it,
  or the end of the input (warplint was killed), ends the run;
- standard output carries one JSON object a line; the last is the outcome;
- the command gets ``/dev/null`` as its input, its output is kept to the last 64 KiB.

The command's processes::

    supervisor ── stage ── init ── command ── …        with a process namespace
    supervisor ── command ── …                         without

``stage`` enters the namespaces; its child is the first process of the new one, adopts and
reaps the orphans there, and takes everything with it when it ends. Without namespaces the
supervisor is the subreaper: an orphan becomes its child, so that "my descendants" is always
complete, and a sweep over ``/proc`` ends them. The supervisor itself is never restricted; what
restricts the command happens between fork and exec.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warplint.probe.runtime import confine, processes
else:
    # Found by path: this is run as a script, and warplint need not be importable.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import confine
    import processes

TAIL = 64 * 1024
POLL = 0.05
"""Seconds between two looks at memory and processes; stretched where looking is expensive."""
SWEEP = 10.0
"""Seconds after which a process that survives SIGKILL (waiting in the kernel) is given up."""
LEAST_MEMORY = 256 << 20
LEAST_DISK = 512 << 20
MOST_FILES = 4
"""How many files of the largest allowed size a program may fill in all."""


@dataclass(frozen=True)
class Order:
    """What to run and under which limits; sent by the sandbox as one JSON line."""

    command: list[str]
    directory: str
    environment: dict[str, str]
    report_fd: int
    writable: list[str]
    scratch: str
    seconds: float
    memory: int
    processes: int
    file_size: int
    without: list[str] = field(default_factory=list)
    """Layers to leave out: ``namespaces``, ``landlock``, ``seccomp``."""


# --- sizes ---------------------------------------------------------------------------------


def size_text(count: int) -> str:
    """``4 GiB``, ``300 MiB``: a limit as a person writes it."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.3g} GiB"
    return f"{count / (1 << 20):.3g} MiB"


def used_below(directory: str, enough: int) -> int:
    """Disk space used below ``directory``, counted until ``enough`` is reached."""
    total = seen = 0
    pending = [directory]
    while pending and total < enough and seen < 100_000:
        with contextlib.suppress(OSError):
            for entry in os.scandir(pending.pop()):
                seen += 1
                total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return total


# --- the child side ------------------------------------------------------------------------


def _keep_only(descriptors: Sequence[int]) -> None:
    """Close every descriptor but these and the three standard ones."""
    low = 3
    for descriptor in sorted(set(descriptors)):
        if descriptor >= low:
            os.closerange(low, descriptor)
            low = descriptor + 1
    # Linux closes the range in one call; elsewhere the supervisor has few open.
    os.closerange(low, 4096)


def _be_command(order: Order, namespaces: Sequence[str], setup: int) -> None:
    """Restrict this process and become the command; returns only by an exception."""
    if os.getpid() != os.getsid(0):
        os.setsid()
    confine.die_with_parent()
    confine.set_dumpable(True)
    achieved = confine.restrict(
        order.writable,
        seconds=order.seconds,
        memory=order.memory,
        file_size=order.file_size,
        processes=order.processes,
        namespaces=namespaces,
        without=order.without,
    )
    os.chdir(order.directory)
    for name in ("SIGPIPE", "SIGXFSZ", "SIGTERM", "SIGINT", "SIGCHLD", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.set_inheritable(order.report_fd, True)
    os.set_inheritable(setup, False)
    os.write(setup, json.dumps({"confined": achieved}).encode())
    os.execvpe(order.command[0], order.command, order.environment)


def _be_init(order: Order, namespaces: Sequence[str], setup: int, exit_pipe: int) -> None:
    """The first process of the namespace: start the command, reap orphans, tell how it ended."""
    confine.die_with_parent()
    if "mount" in namespaces:
        confine.seal_mounts(order.writable, "pid" in namespaces, min(order.memory, 1 << 30))
    command = os.fork()
    if command == 0:
        _keep_only([order.report_fd, setup])
        _be_command(order, namespaces, setup)
    os.close(setup)
    os.close(order.report_fd)
    while True:
        pid, status = os.wait()
        if pid == command:
            os.write(exit_pipe, str(status).encode())
            os._exit(0)


def _be_stage(
    order: Order, namespaces: Sequence[str], supervisor: int, output: int, setup: int, exit_pipe: int
) -> None:
    """The supervisor's child: own session, output to the pipe, namespaces, then the command."""
    os.setsid()
    confine.die_with_parent()
    if os.getppid() != supervisor:  # it ended before the line above could take effect
        os._exit(125)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    _keep_only([order.report_fd, setup, exit_pipe])
    confine.offer_to_oom_killer()
    if "user" in namespaces:
        confine.set_dumpable(True)  # else the files below /proc/self belong to root
    confine.enter_namespaces(namespaces)
    if "pid" not in namespaces:
        if "mount" in namespaces:
            confine.seal_mounts(order.writable, False, min(order.memory, 1 << 30))
        os.close(exit_pipe)
        _be_command(order, namespaces, setup)
    init = os.fork()
    if init == 0:
        os.setsid()
        _be_init(order, namespaces, setup, exit_pipe)
    for descriptor in (order.report_fd, setup, exit_pipe):
        os.close(descriptor)
    os.waitpid(init, 0)
    os._exit(0)


class StartError(Exception):
    """The command could not be started at all."""


# --- the parent side -----------------------------------------------------------------------


class Supervisor:
    """One run: start, watch, end, tell."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.tail = b""
        self.stage = 0
        self.namespaces: tuple[str, ...] = ()
        self.confined: list[str] = []
        self.stage_status: int | None = None
        self.command_status: int | None = None
        self.output = -1
        self.exit_pipe = -1
        self.disk_at_start = self._disk_left()

    # - starting

    def start(self) -> None:
        """Start the command with as many namespaces as the system grants."""
        choices = [()] if "namespaces" in self.order.without else confine.namespace_choices()
        problem = ""
        for names in choices:
            self.namespaces = names
            answer = self._start_with(names)
            if "confined" in answer:
                self.confined = answer["confined"]
                if "failed" in answer:
                    raise StartError(answer["failed"])
                os.close(self.order.report_fd)
                return
            problem = answer.get("failed", "ended while it was being confined")
            self.end_all()
            self._close_pipes()
        raise StartError(problem)

    def _start_with(self, names: tuple[str, ...]) -> dict[str, Any]:
        output_read, output = os.pipe()
        setup_read, setup = os.pipe()
        exit_read, exit_pipe = os.pipe()
        self.output, self.exit_pipe = output_read, exit_read
        self.stage_status = self.command_status = None
        myself = os.getpid()
        self.stage = os.fork()
        if self.stage == 0:
            try:
                _be_stage(self.order, names, myself, output, setup, exit_pipe)
            except BaseException as error:
                message = json.dumps({"failed": str(error) or type(error).__name__})
                with contextlib.suppress(OSError):
                    os.write(setup, message.encode())
            finally:
                os._exit(125)
        for descriptor in (output, setup, exit_pipe):
            os.close(descriptor)
        os.set_blocking(output_read, False)
        os.set_blocking(exit_read, False)
        return self._read_setup(setup_read)

    def _read_setup(self, setup: int) -> dict[str, Any]:
        """What the child said on its way to exec, which closes its end of the pipe."""
        text = b""
        deadline = time.monotonic() + 10
        with selectors.DefaultSelector() as selector:
            selector.register(setup, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                if selector.select(0.5):
                    chunk = os.read(setup, 65536)
                    if not chunk:
                        break
                    text += chunk
        os.close(setup)
        answer: dict[str, Any] = {}
        for part in text.replace(b"}{", b"}\n{").splitlines():
            answer.update(json.loads(part))
        return answer

    def _close_pipes(self) -> None:
        for descriptor in (self.output, self.exit_pipe):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    # - watching

    def watch(self) -> tuple[str, str]:
        """Wait for the end of the command or the first limit it passes: (outcome, detail)."""
        order = self.order
        wake_read, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_read, False)
        terminated: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: terminated.append(1))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        deadline = time.monotonic() + order.seconds
        pause = POLL
        next_look = time.monotonic() + pause
        with selectors.DefaultSelector() as selector:
            for descriptor in (0, wake_read, self.output, self.exit_pipe):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                now = time.monotonic()
                if self._ended():
                    return self._how_it_ended()
                if terminated:
                    return "finished", "stopped"
                if now >= deadline:
                    return "timeout", f"timed out after {order.seconds:g} s"
                if now >= next_look:
                    passed = self._limit_passed()
                    if passed:
                        return passed
                    pause = max(POLL, 10 * (time.monotonic() - now))
                    next_look = time.monotonic() + pause
                for key, _ in selector.select(max(0.0, min(deadline, next_look) - time.monotonic())):
                    if key.fd == 0:
                        # "stop", or the end of the input: either way nobody waits any more.
                        return "finished", "stopped"
                    if key.fd == wake_read:
                        os.read(wake_read, 4096)
                    elif key.fd == self.output:
                        if not self._read_output():
                            selector.unregister(self.output)
                    elif self._read_exit():
                        selector.unregister(self.exit_pipe)

    def _read_output(self) -> bool:
        """Keep the end of the output and forget the rest; False when it is closed."""
        try:
            chunk = os.read(self.output, 1 << 20)
        except BlockingIOError:
            return True
        self.tail = (self.tail + chunk)[-TAIL:]
        return bool(chunk)

    def _read_exit(self) -> bool:
        """Read the status the namespace's init reports; True when there is no more to read."""
        try:
            text = os.read(self.exit_pipe, 64)
        except BlockingIOError:
            return False
        if text:
            self.command_status = int(text)
        return True

    def _ended(self) -> bool:
        self._reap()
        if self.command_status is not None:
            return True
        if self.stage_status is None:
            return False
        if "pid" in self.namespaces:
            self._read_exit()
        else:
            self.command_status = self.stage_status
        return True

    def _reap(self) -> None:
        """Collect every ended child: the stage, and the orphans adopted as subreaper."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.stage:
                self.stage_status = status

    def _how_it_ended(self) -> tuple[str, str]:
        status = self.command_status
        if status is None:
            return "signal", "killed together with its namespace"
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == getattr(signal, "SIGXCPU", None):
                return "timeout", "used up its processor time"
            return "signal", f"killed by {_signal_name(number)}"
        code = os.WEXITSTATUS(status)
        if code == 0:
            return "finished", "ended"
        return "exit", f"exited with status {code}"

    def _limit_passed(self) -> tuple[str, str] | None:
        order = self.order
        left = self._disk_left()
        if left is not None and self.disk_at_start is not None:
            floor = min(LEAST_DISK, self.disk_at_start // 2)
            gone = self.disk_at_start - left
            most = MOST_FILES * order.file_size
            if left < floor or (gone > most and used_below(order.scratch, most) >= most):
                return "disk", "filled the disk"
        if not processes.READABLE:
            return None
        running = processes.descendants(os.getpid())
        helpers = 2 if "pid" in self.namespaces else 0
        if len(running) - helpers > order.processes:
            return "processes", f"started more than {order.processes} processes"
        resident = sum(process.resident for process in running)
        available = processes.available_memory()
        tight = available is not None and available < LEAST_MEMORY and resident > LEAST_MEMORY
        if resident > order.memory or tight:
            # Summing counts shared pages once a process; look closely only now, it is slow.
            used = sum(processes.proportional_memory(process) for process in running)
            if used > order.memory:
                return "memory", f"used more than {size_text(order.memory)} of memory"
            if tight and used > LEAST_MEMORY:
                return "memory", f"left the machine without memory (used {size_text(used)})"
        return None

    def _disk_left(self) -> int | None:
        try:
            facts = os.statvfs(self.order.scratch)
        except OSError:
            return None
        return facts.f_bavail * facts.f_frsize

    # - ending

    def end_all(self) -> int:
        """End every descendant and reap them; returns how many could not be ended."""
        if not processes.READABLE:
            with contextlib.suppress(OSError):
                os.killpg(self.stage, signal.SIGKILL)
            self._reap()
            return 0
        deadline = time.monotonic() + SWEEP
        left = processes.descendants(os.getpid())
        # Stop all first, until no new one turns up: a process that runs could go on forking.
        stopped: set[int] = set()
        while time.monotonic() < deadline:
            fresh = [process for process in left if process.pid not in stopped]
            if not fresh:
                break
            for process in fresh:
                # Ending the init of a namespace ends all in it at once, so it is never stopped.
                whole = "pid" in self.namespaces and process.parent in (os.getpid(), self.stage)
                processes.send(process, signal.SIGKILL if whole else signal.SIGSTOP)
                stopped.add(process.pid)
            left = processes.descendants(os.getpid())
        while left and time.monotonic() < deadline:
            for process in left:
                processes.send(process, signal.SIGKILL)
            self._reap()
            time.sleep(0.002)
            left = processes.descendants(os.getpid())
        self._reap()
        return len(left)

    def drain(self) -> None:
        """Read what is left in the output pipe; all writers are gone."""
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            try:
                chunk = os.read(self.output, 1 << 20)
            except OSError:
                return
            if not chunk:
                return
            self.tail = (self.tail + chunk)[-TAIL:]

    def outcome(self, kind: str, detail: str, seconds: float, survivors: int) -> dict[str, Any]:
        """The last line of the supervisor's report."""
        status = self.command_status
        signalled = status is not None and os.WIFSIGNALED(status)
        exited = status is not None and os.WIFEXITED(status)
        return {
            "outcome": kind,
            "detail": detail,
            "exit_status": os.WEXITSTATUS(status) if exited and status is not None else None,
            "signal": _signal_name(os.WTERMSIG(status)) if signalled and status is not None else None,
            "tail": self.tail.decode("utf-8", "replace"),
            "confined": self.confined,
            "seconds": seconds,
            "survivors": survivors,
        }


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read_order() -> Order:
    text = b""
    while b"\n" not in text:
        chunk = os.read(0, 65536)
        if not chunk:
            raise SystemExit(0)
        text += chunk
    line, _, rest = text.partition(b"\n")
    if rest:  # stopped before it began
        raise SystemExit(0)
    known = {item.name for item in dataclasses.fields(Order)}
    return Order(**{key: value for key, value in json.loads(line).items() if key in known})


def _tell(message: dict[str, Any]) -> None:
    data = (json.dumps(message) + "\n").encode()
    # Nobody may be left to read it; the sweep before mattered, the telling does not.
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def main() -> None:
    """Obey one order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    confine.set_dumpable(False)
    confine.become_subreaper()
    confine.die_with_parent(signal.SIGTERM)
    order = _read_order()
    supervisor = Supervisor(order)
    began = time.monotonic()
    survivors = 0
    try:
        supervisor.start()
        began = time.monotonic()
        kind, detail = supervisor.watch()
    except StartError as error:
        kind, detail = "failed", f"could not be started: {error}"
    except Exception:
        kind, detail = "failed", "supervisor: " + traceback.format_exc(limit=-3)
    finally:
        survivors = supervisor.end_all()
    seconds = time.monotonic() - began
    supervisor.drain()
    _tell(supervisor.outcome(kind, detail, seconds, survivors))


if __name__ == "__main__":
    main()
