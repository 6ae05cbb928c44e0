"""Which Python runs the user's program: the project's own, the first that has Warp.

warplint is often installed apart from the project (pipx, uvx, a pre-commit environment), where
the project's dependencies are missing, and where Warp may be of another version.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplint import __version__, store
from warplint.probe import sandbox
from warplint.probe.scratch import Scratch
from warplint.pythons import candidates
from warplint.versions import NEWEST, OLDEST, parse

_QUESTION = """
import sys
sys.path[:] = [p for p in sys.path if p not in ("", "/")]
import json, os, re
from importlib import metadata, util

def version(distribution, package, file):
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None, False
    folder = list(spec.submodule_search_locations)[0]
    found = None
    try:
        with open(os.path.join(folder, file)) as stream:
            match = re.search(r"^_*version(?:_*)\\s*(?::.*?)?=\\s*['\\"]([^'\\"]+)", stream.read(), re.M)
        found = match.group(1) if match else None
    except OSError:
        pass
    if found is None:
        try:
            found = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            pass
    return found, os.path.isdir(os.path.join(folder, "__pycache__"))

warp, bytecode = version("warp-lang", "warp", "config.py")
numpy, _ = version("numpy", "numpy", "version.py")
print()
packages = [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
print(json.dumps({"python": "%d.%d.%d" % sys.version_info[:3], "warp": warp, "numpy": numpy,
                  "bytecode": bytecode, "packages": packages}))
"""


class NoInterpreter(Exception):  # noqa: N818  (reads as what happened)
    """No Python with Warp was found; the message is one line and says what was tried."""


@dataclass(frozen=True)
class Interpreter:
    """A Python that can import warp and numpy."""

    path: str
    python: str
    warp: str
    numpy: str
    origin: str
    """Where it was found, as a person would say it: ``--python``, ``VIRTUAL_ENV`` …"""
    has_bytecode: bool = True
    """Whether its packages come with compiled bytecode."""
    packages: tuple[str, ...] = ()
    """The directories its packages are installed in."""

    @property
    def note(self) -> str | None:
        """Something worth saying about it, one line."""
        version = parse(self.warp)
        if version is not None and OLDEST <= version <= NEWEST:
            return None
        low, high = (".".join(map(str, bound)) for bound in (OLDEST, NEWEST))
        return f"Warp {self.warp} is not among the versions warplint is tested with ({low} to {high})"


def choose(program: Path, explicit: str | None, root: Path) -> Interpreter:
    """The interpreter for ``program``, a file of the project at ``root``.

    ``explicit`` (``--python`` or the configuration) is a path or a command; it is taken or
    refused, nothing else is tried. Raises ``NoInterpreter``.
    """
    if explicit is not None:
        path = shutil.which(os.path.expanduser(explicit))
        if path is None:
            raise NoInterpreter(f"{explicit}: no such Python interpreter")
        answer = _ask(os.path.abspath(path), "--python")
        if isinstance(answer, str):
            raise NoInterpreter(f"{explicit}: {answer}")
        return answer
    tried: dict[str, str] = {}
    for path, origin in candidates(program, root):
        if path in tried or not os.access(path, os.X_OK):
            continue
        answer = _ask(path, origin)
        if isinstance(answer, Interpreter):
            return answer
        tried[path] = f"{origin} ({path}): {answer}"
    raise NoInterpreter(
        "no Python with Warp was found; give one with --python. Tried " + "; ".join(tried.values())
    )


@functools.cache
def _ask(path: str, origin: str) -> Interpreter | str:
    """What an interpreter can import, or why it will not do; remembered while nothing is installed."""
    file = _memory_of(path)
    entry: Any = store.read(file) if file is not None else None
    try:
        known = entry["interpreter"]
        found = Interpreter(**{**known, "origin": origin, "packages": tuple(known["packages"])})
        if entry["stamp"] == _stamp(path, found.packages):
            return found
    except (LookupError, TypeError, AttributeError):
        pass
    answer = _really_ask(path, origin)
    if file is not None and isinstance(answer, Interpreter) and answer.packages:
        plain = dataclasses.asdict(answer)
        store.write(file, {"interpreter": plain, "stamp": _stamp(path, answer.packages)})
    return answer


def _memory_of(path: str) -> Path | None:
    directory = store.user_directory("interpreters")
    if directory is None:
        return None
    return directory / f"{hashlib.blake2b(path.encode(), digest_size=16).hexdigest()}.json"


def _stamp(path: str, packages: Sequence[str]) -> list[Any]:
    """Changes whenever the interpreter does, or what is installed for it."""
    try:
        status = os.stat(path)
    except OSError:
        return []
    installed = [store.digest_of_packages(directory) for directory in packages]
    return [__version__, os.path.realpath(path), status.st_size, status.st_mtime_ns, *installed]


def _really_ask(path: str, origin: str) -> Interpreter | str:
    """Ask an interpreter what it can import, or say why it will not do.

    An interpreter below the checked tree is part of what is checked, so it is asked under the
    same confinement as a program. Warp itself is not imported: that would take a second.
    """
    with (
        tempfile.TemporaryDirectory(prefix="warplint-ask-") as empty,
        Scratch(Path(empty), Path(empty)) as scratch,
    ):
        plain = Interpreter(path, "", "", "", origin)
        environment = sandbox.program_environment(scratch, plain)
        environment.pop("WARP_CACHE_PATH")
        outcome = sandbox.run(
            [path, "-c", _QUESTION],
            scratch=scratch,
            environment=environment,
            limits=sandbox.Limits(seconds=20, memory=1 << 30, processes=16),
        )
    if outcome.kind == "failed":
        return outcome.detail
    try:
        answer = json.loads(outcome.tail.splitlines()[-1])
        python, warp, numpy = answer["python"], answer["warp"], answer["numpy"]
    except (ValueError, LookupError, TypeError):
        return "does not answer as a Python interpreter should"
    if not isinstance(python, str) or not python.startswith("3."):
        return f"is Python {python}, not 3.9 or newer"
    if tuple(int(part) for part in python.split(".")[:2]) < (3, 9):
        return f"is Python {python}, not 3.9 or newer"
    for name, version in (("warp", warp), ("numpy", numpy)):
        if not isinstance(version, str):
            return f"cannot import {name}"
    packages = tuple(str(entry) for entry in answer.get("packages", ()))
    return Interpreter(path, python, warp, numpy, origin, bool(answer.get("bytecode", True)), packages)
