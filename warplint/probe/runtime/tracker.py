"""Warp's own overwrite tracker, as further evidence: ``wp.config.verify_autograd_array_access``.

It runs in a child of its own, because it compiles every kernel anew, and because it fails on
some programs. It prints its warnings (to standard output or error, through a logger of Warp's or
not, depending on the version), so what the child prints is read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from typing import Any

import warp

from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Event, Observer, Stream

PASSES = 2
"""Backward passes after which the run has seen enough."""
_WARNING = re.compile(
    r"(?:passed to argument (?P<argument>\S+) in kernel (?P<kernel>\S+)"
    r"|is being written to by (?P<operation>\S+)) at (?P<file>[^\n]+?):(?P<line>\d+)"
    r"(?: is being written to)? (?:but has already been read from in a previous launch"
    r"|after it has been read from within the same kernel)"
)


class _Passes(Observer):
    """Leaves after a few backward passes."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.passes = 0

    def after(self, event: Event) -> None:
        if event.kind == "backward":
            self.passes += 1
            if self.passes >= PASSES:
                self.reporter.leave({"problem": None})

    def finished(self, error: BaseException | None) -> None:
        self.reporter.leave({"problem": None if error is None else f"{type(error).__name__}: {error}"})


def track(stream: Stream, run_user: Callable[[], None], deadline: float) -> dict[str, Any]:
    """The tracker's warnings on this program, each once, with how often it was given."""
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8", errors="replace") as said:

        def work(reporter: Reporter) -> None:
            target = os.open(said.name, os.O_WRONLY | os.O_APPEND)
            os.dup2(target, 1)
            os.dup2(target, 2)
            warp.config.verify_autograd_array_access = True
            stream.observer = _Passes(reporter)
            run_user()

        problem: str | None
        try:
            problem = run_in_child(work, deadline)["problem"]
        except ChildFailure as failure:
            problem = failure.reason
        said.seek(0)
        found = warnings(said.read(), stream.sites.name)
    return {"warnings": found, "problem": problem}


def warnings(text: str, name_of: Callable[[str], str | None]) -> list[dict[str, Any]]:
    """The warnings in what a run printed, by argument, kernel or operation, and place."""
    found: dict[tuple, dict[str, Any]] = {}
    for match in _WARNING.finditer(text):
        given = match.groupdict()
        file = name_of(given["file"]) or given["file"]
        key = (given["argument"], given["kernel"], given["operation"], file, int(given["line"]))
        row = found.setdefault(key, {**given, "file": file, "line": int(given["line"]), "count": 0})
        row["count"] += 1
    return [found[key] for key in sorted(found, key=lambda key: (key[3], key[4], repr(key)))]
