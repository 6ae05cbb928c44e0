"""Run a program under limits, listen to what it reports, leave nothing behind.

``run`` starts the supervisor (``runtime/supervisor.py``) under warplint's own interpreter: it
is the trusted part, so nothing of the checked tree has a say in it. The supervisor starts the
command, confined, and ends everything the command started. warplint itself only reads two
pipes: the outcome from the supervisor, and the report the program's probe writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplint.probe.runtime import supervisor
from warplint.probe.scratch import Scratch, is_broad

if TYPE_CHECKING:
    from warplint.probe.interpreter import Interpreter

REPORT_FD = "WARPLINT_REPORT_FD"
"""Environment variable with the number of the descriptor the program's probe reports on."""
MARK = "WARPLINT_RUN"
"""Environment variable that marks every process of a run, in case its supervisor is killed."""
LONGEST_LINE = 32 << 20
STOP = "stop"
_GRACE = 30.0
"""Seconds beyond the time limit after which a supervisor that says nothing is given up."""


@dataclass(frozen=True)
class Limits:
    """What one run may take; memory in bytes for all its processes together."""

    seconds: float = 60
    memory: int = 4 << 30
    processes: int = 96
    file_size: int = 1 << 30


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    ``kind`` is ``finished`` (by itself with status 0, or stopped because the verdicts were
    complete: ``detail`` says which), ``exit`` (another status), ``signal``, ``timeout``,
    ``memory``, ``processes``, ``disk``, or ``failed`` (it could not be run at all).
    """

    kind: str
    detail: str
    exit_status: int | None = None
    signal: str | None = None
    tail: str = ""
    """The last 64 KiB of standard output and standard error together."""
    seconds: float = 0.0
    confined: tuple[str, ...] = ()
    dropped: int = 0
    """Lines on the report pipe that were no messages."""
    survivors: int = 0
    """Processes that could not be ended within ten seconds of SIGKILL (hung in the kernel)."""


class _Lines:
    """Cuts a byte stream into JSON messages; hostile input is dropped and counted."""

    def __init__(self, on_message: Callable[[dict[str, Any]], object]) -> None:
        self.on_message = on_message
        self.pending: list[bytes] = []
        self.length = 0
        self.too_long = False
        self.dropped = 0
        self.stopped = False

    def feed(self, data: bytes) -> None:
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._append(piece)
            self._finish()
        self._append(rest)

    def close(self) -> None:
        """The end of the stream: a last line without its end was cut off and is no message."""
        if self.length or self.too_long:
            self.dropped += 1

    def _append(self, piece: bytes) -> None:
        self.length += len(piece)
        if self.length > LONGEST_LINE:
            self.too_long = True
            self.pending.clear()
        elif piece:
            self.pending.append(piece)

    def _finish(self) -> None:
        line, too_long = b"".join(self.pending), self.too_long
        self.pending, self.length, self.too_long = [], 0, False
        if self.stopped:
            return
        try:
            message = None if too_long else json.loads(line)
        except (ValueError, RecursionError, MemoryError):
            message = None
        if not isinstance(message, dict):
            self.dropped += 1
        elif self.on_message(message) == STOP:
            self.stopped = True


_ended = threading.Event()


@contextlib.contextmanager
def all_end_with() -> Iterator[None]:
    """End the runs of all threads when the block is left by an exception.

    Signals reach the main thread alone; without this it would wait for the others' time limits.
    """
    _ended.clear()
    try:
        yield
    except BaseException:
        _ended.set()
        raise


def run(
    command: Sequence[str],
    *,
    scratch: Scratch,
    environment: Mapping[str, str],
    limits: Limits = Limits(),
    writable: Sequence[Path] = (),
    on_message: Callable[[dict[str, Any]], object] = lambda message: None,
    without: Sequence[str] = (),
) -> Outcome:
    """Run ``command`` in ``scratch.working_directory`` and hand its messages to ``on_message``.

    It may write in the scratch, in ``writable`` and in the kernel cache its environment names.
    ``on_message`` is called in this thread while the program runs; when it answers ``"stop"``
    the run ends at once. Whatever happens, exceptions and Ctrl-C included, no process of the
    run is left when this returns. ``without`` leaves layers of the confinement out
    (``namespaces``, ``landlock``, ``seccomp``).
    """
    if _ended.is_set():
        return Outcome("failed", "interrupted")
    if os.name != "posix":
        return Outcome("failed", "programs can only be run safely on Linux and macOS")
    places = [scratch.base / "tree", scratch.directory, scratch.pycache, *writable]
    if environment.get("WARP_CACHE_PATH"):
        places.append(Path(environment["WARP_CACHE_PATH"]))
    mark = secrets.token_hex(16)
    report, report_end = os.pipe()
    order = {
        "command": [os.fspath(word) for word in command],
        "directory": str(scratch.working_directory),
        "environment": {**environment, REPORT_FD: str(report_end), MARK: mark},
        "report_fd": report_end,
        "writable": sorted({os.path.realpath(place) for place in places if place.is_dir()}),
        "scratch": str(scratch.base),
        "seconds": limits.seconds,
        "memory": limits.memory,
        "processes": limits.processes,
        "file_size": limits.file_size,
        "without": list(without),
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_plain_environment(),
            pass_fds=[report_end],
            start_new_session=True,  # a Ctrl-C reaches warplint alone, which then ends the run
        )
    except OSError as error:
        os.close(report)
        return Outcome("failed", f"could not be started: {error}")
    finally:
        os.close(report_end)
    lines = _Lines(on_message)
    answer: dict[str, Any] | None = None
    try:
        answer = _converse(process, report, order, lines, limits.seconds + _GRACE)
    finally:
        try:
            _end(process)
        finally:  # a second Ctrl-C may have cut that short
            os.close(report)
            if answer is None:
                _end_marked(mark)
    lines.close()
    if answer is None:
        return Outcome("failed", "the supervisor was killed", dropped=lines.dropped)
    return Outcome(
        kind=answer["outcome"],
        detail=answer["detail"],
        exit_status=answer["exit_status"],
        signal=answer["signal"],
        tail=answer["tail"],
        seconds=answer["seconds"],
        confined=tuple(answer["confined"]),
        dropped=lines.dropped,
        survivors=answer["survivors"],
    )


def _converse(
    process: subprocess.Popen[bytes],
    report: int,
    order: Mapping[str, Any],
    lines: _Lines,
    patience: float,
) -> dict[str, Any] | None:
    """Give the order, pass on messages until the supervisor has told the outcome."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
    os.set_blocking(report, False)
    status, told = process.stdout.fileno(), b""
    deadline = time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        selector.register(report, selectors.EVENT_READ)
        selector.register(status, selectors.EVENT_READ)
        asked = False
        while time.monotonic() < deadline and not _ended.is_set():
            if lines.stopped and not asked:
                asked = True
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(b"stop\n")
                    process.stdin.flush()
            ready = {key.fd for key, _ in selector.select(1.0)}
            if report in ready and not _read(report, lines):
                selector.unregister(report)
            if status in ready:
                chunk = os.read(status, 1 << 16)
                told += chunk
                if not chunk:
                    break
    # Every writer is gone: what they wrote last still lies in the pipe.
    with contextlib.suppress(BlockingIOError):
        while _read(report, lines, blocking_is_end=True):
            pass
    try:
        answer = json.loads(told.splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return answer if isinstance(answer, dict) else None


def _read(report: int, lines: _Lines, blocking_is_end: bool = False) -> bool:
    """Read once from the report pipe; False at its end."""
    try:
        chunk = os.read(report, 1 << 18)
    except BlockingIOError:
        return not blocking_is_end
    if chunk:
        lines.feed(chunk)
    return bool(chunk)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the supervisor end the run; it takes the end of its input as the order to."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(supervisor.SWEEP + 5)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def _end_marked(mark: str) -> None:
    """End what is left of a run whose supervisor is gone, by the mark in its environment."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(100):
        found = 0
        with contextlib.suppress(OSError):
            for name in os.listdir("/proc"):
                if not name.isdigit() or int(name) == os.getpid():
                    continue
                with contextlib.suppress(OSError):
                    if wanted in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                        os.kill(int(name), signal.SIGKILL)
                        found += 1
        if not found:
            return
        time.sleep(0.01)


# --- what to tell a person -----------------------------------------------------------------

_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: .*)?$")


def blocked_reason(outcome: Outcome) -> str:
    """Why a run gave no verdict, as one lower-case phrase."""
    before = "before a gradient could be checked"
    if outcome.kind == "finished":
        return f"ended {before}" if outcome.detail == "ended" else f"was {outcome.detail} {before}"
    if outcome.kind == "exit":
        raised = _last_exception(outcome.tail)
        return f"stopped with {raised}" if raised else f"{outcome.detail} {before}"
    return _printable(outcome.detail)


def _last_exception(tail: str) -> str | None:
    """The last line of a traceback that ends the output, if one does."""
    last = tail.rstrip().rpartition("\n")[2]
    if "Traceback (most recent call last)" in tail and _EXCEPTION.match(last):
        return _printable(last)
    return None


def _printable(text: str) -> str:
    """Text of a program made safe for a terminal and short enough for a line."""
    clean = "".join(c if c.isprintable() else " " for c in text.strip())
    return clean if len(clean) <= 200 else clean[:199] + "…"


# --- the program's environment -------------------------------------------------------------

_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE|AUTH|COOKIE|SESSION|_PROXY$|_URL$"
    r"|^(AWS|AZURE|ARM|GCP|GCLOUD|CLOUDSDK|GOOGLE|GITHUB|GH|GITLAB|CI_JOB|ACTIONS|RUNNER|SSH|GPG|DOCKER|KUBE"
    r"|NPM|TWINE|WANDB|OPENAI|ANTHROPIC|NGC|SLACK|DATABASE|MYSQL|REDIS|MONGO|SENTRY|VAULT)_"
    r"|^(PGPASSFILE|KUBECONFIG|NETRC)$",
    re.IGNORECASE,
)
_URL_WITH_PASSWORD = re.compile(r"://[^/\s]*@")
_SUPERVISOR_NEEDS = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "SYSTEMROOT")
_FIXED = {
    "MPLBACKEND": "Agg",
    "SDL_VIDEODRIVER": "dummy",
    "SDL_AUDIODRIVER": "dummy",
    "QT_QPA_PLATFORM": "offscreen",
    "PYGLET_HEADLESS": "1",
    "PYTHONHASHSEED": "0",
    # Threads would not survive the forks of the probe, and make sums differ from run to run.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}
_REMOVED = frozenset(
    {
        *("PYTHONUNBUFFERED", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONPYCACHEPREFIX"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    }
)


def _plain_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _SUPERVISOR_NEEDS if name in os.environ}


def passed_on() -> dict[str, str]:
    """The caller's environment without its secrets, made headless, single-threaded and repeatable."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not (_SECRET.search(name) or name in _REMOVED or _URL_WITH_PASSWORD.search(value))
    }
    return {**environment, **_FIXED}


def program_environment(scratch: Scratch, interpreter: Interpreter) -> dict[str, str]:
    """The environment of a program: its temporary files and bytecode go to the scratch."""
    environment = passed_on()
    environment.update({name: str(scratch.directory) for name in ("TMPDIR", "TMP", "TEMP")})
    environment["PWD"] = str(scratch.working_directory)
    environment["WARP_CACHE_PATH"] = str(kernel_cache(scratch))
    if interpreter.has_bytecode:
        # A prefix would hide the bytecode installed beside warp and numpy, and compiling them
        # anew takes a second and a half every time.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    else:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(scratch.pycache)
    if environment.get("PYTHONPATH"):
        paths = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(
            str(scratch.to_scratch(Path(path))) for path in paths if path
        )
    return environment


def kernel_cache(scratch: Scratch) -> Path:
    """Where compiled kernels are kept from run to run: the one writable place outside a scratch.

    ``WARP_CACHE_PATH`` if the caller set it, else a cache of warplint's own; a directory in the
    scratch where that cannot be made, or where making it writable would open the user's files.
    """
    configured = os.environ.get("WARP_CACHE_PATH")
    if configured:
        wanted = Path(configured).expanduser()
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        wanted = Path(base) / "warplint" / "warp-kernels"
    with contextlib.suppress(OSError, RuntimeError):
        wanted = wanted.resolve()
        exposes = (
            is_broad(wanted) or wanted.is_relative_to(scratch.root) or scratch.root.is_relative_to(wanted)
        )
        if wanted.is_absolute() and not exposes:
            wanted.mkdir(parents=True, exist_ok=True)
            if os.access(wanted, os.W_OK | os.X_OK):
                return wanted
    fallback = scratch.directory / "warp-kernels"
    fallback.mkdir(exist_ok=True)
    return fallback
