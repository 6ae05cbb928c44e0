"""The process in which code is read and programs are probed, one request at a time.

A request is a line of JSON on standard input, and so is an answer on standard output. Where the
system can fork, every request is worked on by a child of a process that has everything loaded: it
starts at once, and ends at once when nobody wants its answer any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from warplint import buffers
from warplint.cli.check import Run, check
from warplint.cli.commands import check_command
from warplint.cli.errors import CallError, Terminated
from warplint.cli.options import Options, decide
from warplint.model import Program, to_plain
from warplint.rulebook import load_rules
from warplint.source.discovery import SourceFile

Tell = Callable[[dict[str, Any]], None]
_PATIENCE = 20.0
"""Seconds that a probe has to clean up in."""


def answer(request: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """Do what a request asks for; ``tell`` is for progress."""
    root = Path(request["root"])
    buffers.hold({Path(path): text.encode("utf-8", "replace") for path, text in request["buffers"].items()})
    # Of the texts that are read now: they may change while programs run.
    digests = {name: SourceFile(root / name, name).digest for name in request["watch"]}
    try:
        os.chdir(root)
        options, run = _run(request, tell)
    except (CallError, OSError) as error:
        return {"problem": str(error)}
    return {
        "results": to_plain(run.report.results),
        "rows": to_plain(run.report.programs),
        "warnings": list(run.warnings),
        "errors": list(run.internal_errors),
        "show_dismissed": options.show_dismissed,
        "programs": [to_plain(choice.program) for choice in run.choices if choice.skipped is None],
        "digests": digests,
    }


def _run(request: Mapping[str, Any], tell: Tell) -> tuple[Options, Run]:
    rules = load_rules()
    prove = request.get("prove")
    if prove is None:
        options = _options(request, rules, ["--no-probe"])
        return options, check(options, rules)
    wanted = frozenset(prove["programs"])

    def listen(event: Any) -> None:
        tell({"stage": event.stage, "program": event.program, "done": event.done, "total": event.total})

    flags = ["--probe=all", "--diff"] if prove.get("fix") else ["--probe=all"]
    if prove.get("entry"):
        flags += [f"--entry={prove['entry']}"]
    options = _options(request, rules, flags)
    if request["buffers"]:
        # What is measured is not what lies on the disk: it is not kept, and no script repeats it.
        measuring = {**options.settings, "cache": False, "evidence": False}
        options = replace(options, settings=measuring)

    def is_wanted(program: Program) -> bool:
        return bool(prove.get("entry")) or program.file in wanted

    # Dismissed findings travel, too: a verdict may take a finding away.
    all_shown = replace(options, show_dismissed=True)
    return options, check(all_shown, rules, wanted=is_wanted, listen=listen)


def _options(request: Mapping[str, Any], rules: Any, flags: list[str]) -> Options:
    """The options as the command line would have them, with the editor's settings on top."""
    if request["paths"] != ["."]:
        flags = [*flags, "--no-cache"]  # what is known of the whole tree is kept for those who read it
    words = [*flags, "--", *request["paths"]]
    given = check_command.make_context("check", words).params
    return decide(given, rules, request["settings"])


# --- the life of the process ------------------------------------------------------------------


def main() -> None:
    """Answer requests until the editor's server goes away."""
    out = os.dup(1)
    os.dup2(2, 1)  # what is printed by accident must not be taken for an answer
    if not hasattr(os, "fork"):  # pragma: no cover - depends on the system
        for line in sys.stdin.buffer:
            request = json.loads(line)
            if "cancel" not in request:
                _answer_all(request, lambda data: _write(out, data))
        return
    _load()
    _Forks(out).serve()


def _load() -> None:
    import warplint.checks
    import warplint.source.prepare
    import warplint.static.outcomes
    import warplint.static.run  # noqa: F401

    load_rules()


@dataclass
class _Child:
    number: int
    pid: int
    pipe: int
    gentle: bool
    """It holds more than memory: it is asked to end before it is made to."""
    pending: bytes = b""
    answered: bool = False


class _Forks:
    """Hands each request to a child and passes on what that says."""

    def __init__(self, out: int) -> None:
        self.out = out
        self.child: _Child | None = None
        self.waiting: list[dict[str, Any]] = []

    def serve(self) -> None:
        pending = b""
        while True:
            if self.child is None and self.waiting:
                self.child = self._start(self.waiting.pop(0))
            watched = [0] + ([self.child.pipe] if self.child else [])
            ready, _, _ = select.select(watched, [], [])
            if self.child and self.child.pipe in ready:
                self._relay(self.child)
            if 0 in ready:
                data = os.read(0, 1 << 20)
                if not data:
                    break
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
        if self.child:
            self._end(self.child)

    def _take(self, message: dict[str, Any]) -> None:
        if "cancel" not in message:
            self.waiting.append(message)
            return
        self.waiting = [request for request in self.waiting if request["id"] != message["cancel"]]
        if self.child and self.child.number == message["cancel"]:
            self._end(self.child)
            self.child = None

    def _start(self, request: dict[str, Any]) -> _Child:
        pipe, end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(pipe)
            _child(request, end, self.out)
        os.close(end)
        return _Child(request["id"], pid, pipe, gentle=request.get("prove") is not None)

    def _relay(self, child: _Child) -> None:
        data = os.read(child.pipe, 1 << 20)
        if data:
            *lines, child.pending = (child.pending + data).split(b"\n")
            for line in lines:
                child.answered = child.answered or b'"answer"' in line[:200]
                _write(self.out, line + b"\n")
            return
        self._reap(child, signal.SIGKILL)
        self.child = None
        if not child.answered:
            _write(
                self.out,
                _line({"id": child.number, "answer": {"problem": "the check was ended from outside"}}),
            )

    def _end(self, child: _Child) -> None:
        """End a child whose answer is not wanted any more."""
        if child.gentle:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
            deadline = time.monotonic() + _PATIENCE
            while time.monotonic() < deadline:
                ready, _, _ = select.select([child.pipe], [], [], 0.2)
                if ready and not os.read(child.pipe, 1 << 20):
                    break
        self._reap(child, signal.SIGKILL)

    @staticmethod
    def _reap(child: _Child, number: int) -> None:
        """The child is not waited for before, so its number cannot be somebody else's."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)
        os.waitpid(child.pid, 0)
        os.close(child.pipe)


def _child(request: dict[str, Any], end: int, out: int) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        os.close(out)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.close(null)
        signal.signal(signal.SIGTERM, _terminated)
        _answer_all(request, lambda data: _write(end, data))
        status = 0
    except Terminated:
        status = 128 + signal.SIGTERM
    finally:
        os._exit(status)


def _terminated(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated(number)


def _answer_all(request: Mapping[str, Any], write: Callable[[bytes], None]) -> None:
    def tell(progress: dict[str, Any]) -> None:
        write(_line({"id": request["id"], "progress": progress}))

    try:
        told = answer(request, tell)
    except Exception as error:  # a bug of ours must not leave the editor waiting
        told = {"problem": f"internal error: {type(error).__name__}: {error}"}
    write(_line({"id": request["id"], "answer": told}))


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
