"""What earlier probes were told, as long as nothing that a program depends on has changed.

An entry is named by all that is known before a run: the program with its arguments, the
interpreter, the settings, the static findings that were to be decided, and the probe's own code.
It holds what the run told, and what the run depended on: the files it read or imported, the
directories it listed, the packages that are installed. A run whose end depended on the clock is
never kept. Damaged or foreign entries are as good as none.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from warplint import __version__, store
from warplint.model import Finding, Program, to_plain
from warplint.probe import ProbeSettings, sandbox
from warplint.probe.facts import Facts
from warplint.probe.interpreter import Interpreter

KEPT = 2000
"""Entries above this number are removed, the least recently used first."""
_CLOCK = re.compile(
    r"time limit|timed out|do not fit|did not come to an end|hung|first [\d.]+ s|probe itself"
)
"""Words in what a run told that speak of the clock or of an accident."""
_VOLATILE = re.compile(
    r"^(_|SHLVL|OLDPWD|PWD|TERM.*|COLORTERM|COLUMNS|LINES|WINDOWID|XDG_SESSION.*|PYTEST_.*|COV_.*)$"
)
_UNLISTED = ("__pycache__",)


class VerdictCache:
    """Entries below ``directory``; None keeps nothing and finds nothing."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    @classmethod
    def of_user(cls) -> VerdictCache:
        """In the user's own cache directory, or wherever ``WARPLINT_CACHE_DIR`` says."""
        return cls(store.user_directory("verdicts"))

    def get(self, key: str) -> list[dict[str, Any]] | None:
        """What a run told, if everything it depended on is as it was."""
        if self.directory is None:
            return None
        file = self.directory / f"{key}.json"
        entry = store.read(file)
        try:
            told = entry["told"]
            unchanged = isinstance(told, list) and _unchanged(entry["depends"])
        except (LookupError, TypeError, AttributeError):
            return None
        if not unchanged:
            return None
        with contextlib.suppress(OSError):
            os.utime(file)
        return list(told)

    def put(self, key: str, facts: Facts, interpreter: Interpreter) -> None:
        """Keeps what a run told, unless its end depended on the clock; never raises for the disk."""
        if self.directory is None or not keepable(facts):
            return
        listed = [path for path in facts.listings if not _installed(path, interpreter)]
        depends = {
            "files": {path: _fingerprint(path) for path in _own(facts.files, interpreter)},
            "listings": {path: _listing(path) for path in listed},
            "packages": {path: store.digest_of_packages(path) for path in interpreter.packages},
        }
        if store.write(self.directory / f"{key}.json", {"told": facts.told, "depends": depends}):
            self._prune()

    def _prune(self) -> None:
        assert self.directory is not None
        with contextlib.suppress(OSError):
            entries = sorted(self.directory.glob("*.json"), key=lambda f: f.stat().st_mtime)
            for file in entries[: max(0, len(entries) - KEPT)]:
                file.unlink(missing_ok=True)


def key_of(
    program: Program, findings: Sequence[Finding], interpreter: Interpreter, settings: ProbeSettings
) -> str:
    """The name of a program's entry: everything that is known before it runs."""
    environment = {n: v for n, v in sandbox.passed_on().items() if not _VOLATILE.match(n)}
    known = {
        "warplint": __version__,
        "probe": _probe_code(),
        "root": str(settings.root),
        "program": [
            program.file,
            list(program.arguments),
            program.working_directory,
            program.module,
            program.node,
        ],
        "interpreter": [interpreter.path, interpreter.python, interpreter.warp, interpreter.numpy],
        "device": settings.device,
        "tracker": settings.tracker,
        "overrides": [list(pair) for pair in settings.overrides],
        "requests": sorted({json.dumps([f.rule, to_plain(f.request)]) for f in findings if f.request}),
        "environment": {**environment, **dict(settings.env)},
        "parameters": [list(settings.parameters), settings.objective],
        "investigate": [settings.investigate, settings.horizon, settings.iteration],
    }
    return hashlib.blake2b(json.dumps(known, sort_keys=True).encode(), digest_size=20).hexdigest()


def keepable(facts: Facts) -> bool:
    """Whether the same run would tell the same again, however fast the machine is."""
    if not facts.finished or facts.blocked or facts.internal_error:
        return False
    return not any(_CLOCK.search(text) for text in _texts(facts.told))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("files", "listings", "lines", "stack", "replay"):
                yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


# -- what a run depended on --------------------------------------------------------------


def _unchanged(depends: dict[str, Any]) -> bool:
    return (
        all(store.digest_of_packages(path) == was for path, was in depends["packages"].items())
        and all(_same(path, was) for path, was in depends["files"].items())
        and all(_listing(path) == was for path, was in depends["listings"].items())
    )


def _own(files: Iterable[str], interpreter: Interpreter) -> list[str]:
    """Files that no installed package answers for: the project's and data from anywhere."""
    return [path for path in files if not _installed(path, interpreter)]


@functools.cache
def _standard_library(python: str) -> str:
    return os.path.dirname(os.path.dirname(os.path.realpath(python)))


def _installed(path: str, interpreter: Interpreter) -> bool:
    roots = (*interpreter.packages, _standard_library(interpreter.path), str(Path(__file__).parent))
    return any(path.startswith(root + os.sep) or path == root for root in roots)


def _fingerprint(path: str) -> list[Any]:
    """Size, time and content of a file; an absent one has none of them."""
    try:
        status = os.stat(path)
        with open(path, "rb") as stream:
            return [status.st_size, status.st_mtime_ns, hashlib.blake2b(stream.read()).hexdigest()]
    except OSError:
        return []


def _same(path: str, was: list[Any]) -> bool:
    """Same size and time, or at least the same content (a checkout changes times)."""
    try:
        status = os.stat(path)
    except OSError:
        return not was
    if not was or status.st_size != was[0]:
        return False
    return status.st_mtime_ns == was[1] or _fingerprint(path)[-1:] == was[-1:]


def _listing(path: str) -> str:
    return store.digest_of_names(path, lambda name: not name.startswith(".") and name not in _UNLISTED)


@functools.cache
def _probe_code() -> str:
    """The code that runs in the program's process, as it lies on the disk."""
    parts = []
    for directory, folders, names in os.walk(Path(__file__).parent / "runtime"):
        folders.sort()
        for name in sorted(n for n in names if n.endswith(".py")):
            parts.append(f"{name} {hashlib.blake2b(Path(directory, name).read_bytes()).hexdigest()}")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
