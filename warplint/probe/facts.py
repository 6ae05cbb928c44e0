"""What the run of one program told, as plain records with the user's own paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplint import buffers

Frame = tuple[str, int]
"""(display path, line)"""


@dataclass
class Facts:
    """Collected from the messages of one run."""

    warp: str | None = None
    device: str | None = None
    started: bool = False
    blocked: str | None = None
    nothing: str | None = None
    structure: dict[str, Any] = field(default_factory=dict)
    episodes: list[dict[str, Any]] = field(default_factory=list)
    attributions: list[dict[str, Any]] = field(default_factory=list)
    launch_tests: list[dict[str, Any]] = field(default_factory=list)
    """Kernels whose launches were tested by themselves."""
    untried: dict[str, str] = field(default_factory=dict)
    """Kernels for which no arguments could be made up, and why."""
    function_tests: list[dict[str, Any]] = field(default_factory=list)
    """Functions whose custom adjoints were compared with their derivatives."""
    solvers: list[dict[str, Any]] = field(default_factory=list)
    """What more turns of a solver make of the objective, by the places that were asked about."""
    uncovered: list[str] = field(default_factory=list)
    step: dict[str, Any] | None = None
    """What the optimizer's first step did to the objective, where gradients are right."""
    shortened: list[dict[str, Any]] = field(default_factory=list)
    """Numbers of the program that were replaced to make it short enough."""
    forward_passes: int = 0
    substitutions: list[str] = field(default_factory=list)
    executed: set[Frame] = field(default_factory=set)
    """Lines of user code that some event or allocation of the run lies under."""
    files: list[str] = field(default_factory=list)
    """Files the program read or imported, as paths of the probed copy."""
    listings: list[str] = field(default_factory=list)
    """Directories whose entries it asked for."""
    unmet: list[str] = field(default_factory=list)
    """Constants that were to be replaced, of modules that the program does not load."""
    tracker: list[dict[str, Any]] = field(default_factory=list)
    """Warnings of Warp's own overwrite tracker."""
    tracker_problem: str | None = None
    explained: dict[str, Any] | None = None
    """How the parameters, the objective and the consumed gradient were found."""
    localized: dict[str, Any] | None = None
    """Where on the tape autodiff and finite differences part."""
    course: dict[str, Any] | None = None
    """The objective over the iterations, where the gradients are right."""
    memory: dict[str, Any] | None = None
    """What the arrays of a step take, where all of them take too much."""
    told: list[dict[str, Any]] = field(default_factory=list)
    """The messages themselves: what a cache keeps."""
    finished: bool = False
    internal_error: str | None = None

    def take(self, message: dict[str, Any]) -> None:
        """Adds one message of the runtime; unknown ones are ignored."""
        self.told.append(message)
        kind = message.get("type")
        if kind == "started":
            self.started = True
            self.warp, self.device = message.get("warp"), message.get("device")
        elif kind == "blocked":
            self.blocked = str(message.get("reason"))
        elif kind == "nothing":
            self.nothing = str(message.get("reason"))
        elif kind == "scouted":
            self.executed = {(str(f), int(n)) for f, n in message.get("lines", ())}
        elif kind == "inputs":
            self.files, self.listings = list(message["files"]), list(message["listings"])
        elif kind == "measured":
            self.structure = message["structure"]
            self.episodes = message["episodes"]
            self.uncovered = message["uncovered"]
            self.step = message.get("step")
            self.shortened = message.get("shortened", [])
        elif kind == "tracker":
            self.tracker, self.tracker_problem = message["warnings"], message["problem"]
        elif kind == "attribution":
            self.attributions.append(message)
        elif kind == "launch-tests":
            self.launch_tests = message["kernels"]
            self.untried = message.get("untried", {})
        elif kind == "function-tests":
            self.function_tests = message["functions"]
        elif kind in ("explained", "localized", "course", "memory"):
            setattr(self, kind, message)
        elif kind == "solvers":
            self.solvers = message["rows"]
        elif kind == "internal-error":
            self.internal_error = str(message.get("reason"))
        elif kind == "finished":
            self.finished = True
            self.forward_passes = int(message["forward_passes"])
            self.substitutions = list(message["substitutions"])
            self.unmet = list(message.get("unmet", ()))


class Paths:
    """Translates between reported names (relative to the probed copy), and display paths."""

    def __init__(self, project: Path, root: Path, overlay: Mapping[Path, bytes] | None = None) -> None:
        self.project = project.resolve()
        self.root = root.resolve()
        self.overlay = overlay or {}
        """Contents that the program was run with in the place of what is on the disk."""
        self._lines: dict[Path, tuple[str, ...]] = {}

    def display(self, name: str) -> str:
        """The display path of a name the runtime reported."""
        path = Path(name) if os.path.isabs(name) else self.project / name
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def reported(self, display: str) -> str:
        """The name under which the runtime knows a file of the checked tree."""
        path = self.absolute(display)
        try:
            return path.relative_to(self.project).as_posix()
        except ValueError:
            return str(path)

    def absolute(self, display: str) -> Path:
        return Path(os.path.realpath(display if os.path.isabs(display) else self.root / display))

    def read(self, file: Path) -> bytes:
        """The contents that the program was run with."""
        known = self.overlay.get(file, buffers.held(file))
        return file.read_bytes() if known is None else known

    def lines(self, file: Path) -> tuple[str, ...]:
        """The lines of a file; none if it cannot be read."""
        if file not in self._lines:
            try:
                text = self.read(file).decode("utf-8", "replace")
            except OSError:
                text = ""
            self._lines[file] = tuple(text.splitlines())
        return self._lines[file]

    def frames(self, stack: Iterable[Any]) -> list[Frame]:
        return [(self.display(str(frame[0])), int(frame[1])) for frame in stack]
