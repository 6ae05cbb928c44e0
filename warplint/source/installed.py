"""Which Warp a project uses, read off the disk: nothing is run to find out.

First what is installed where the probe would run the project's programs, then what the project's
own files ask for, at last what is installed beside warplint.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from warplint.pythons import OWN, candidates, directories
from warplint.versions import Version, allowed, parse

__all__ = ["Installed"]

_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock")
_REQUIREMENTS = ("pyproject.toml", "setup.cfg", "Pipfile", "environment.yml", "environment.yaml")
_MOST_BYTES = 8 << 20

_LOCKED = re.compile(r'name = "warp-lang"\s+version = "([^"]+)"')
_LOCKED_JSON = re.compile(r'"warp-lang":\s*\{[^{}]*?"version":\s*"==([^"]+)"')
_REQUIRED = re.compile(r"\bwarp-lang(?:\[[^\]]*\])?\s*\(?((?:[=<>!~^]=?=?\s*[\w.*]+\s*,?\s*)+)")
_TABLE = re.compile(r'^"?warp-lang"?\s*=\s*(?:\{[^}\n]*?version\s*=\s*)?"([^"\n]+)"', re.M)


class Installed:
    """The Warp that the programs of a project run with."""

    def __init__(self, root: Path, python: str | None = None) -> None:
        self.root = Path(os.path.abspath(root))
        self.python = python
        """An interpreter that was named: a path or a command."""
        self._known: dict[Path, Version | None] = {}
        # Most directories of a project share their interpreters and what lies above them.
        self._installed = functools.cache(_installed)
        self._asked = functools.cache(_asked)

    def of(self, file: Path) -> Version | None:
        """The version for a program; None where it is not known."""
        directory = Path(os.path.abspath(self.root / file)).parent
        if directory not in self._known:
            self._known[directory] = self._of_directory(directory)
        return self._known[directory]

    def _of_directory(self, directory: Path) -> Version | None:
        if self.python is not None:
            named = shutil.which(os.path.expanduser(self.python))
            return _installed(os.path.abspath(named)) if named else None
        own: Version | None = None
        for path, origin in candidates(directory / "program.py", self.root):
            found = self._installed(path)
            if origin == OWN:
                own = found
            elif found is not None:
                return found
        for place in directories(directory / "program.py", self.root):
            asked = self._asked(place)
            if asked:
                # An installer takes the newest one.
                return own if own in asked else max(asked)
        return own


def _asked(directory: Path) -> frozenset[Version]:
    """The versions that the files of one directory lock or allow; none where they say nothing."""
    locked = _locked(directory)
    return frozenset((locked,)) if locked else allowed(_required(directory))


def _installed(python: str) -> Version | None:
    """The Warp of an interpreter, or None where it has none, or where its packages lie is not plain."""
    for directory in _packages(python):
        for entry in sorted(Path(directory).glob("warp_lang-*.dist-info")):
            return parse(entry.name.removeprefix("warp_lang-"))
        text = _text(Path(directory) / "warp" / "config.py")
        found = re.search(r"^_*version_*\s*(?::.*?)?=\s*['\"]([^'\"]+)", text, re.M)
        if found:
            return parse(found[1])
    return None


def _packages(python: str) -> Iterator[str]:
    """Directories in which an interpreter looks for packages."""
    if os.path.abspath(python) == os.path.abspath(sys.executable):
        yield from (entry for entry in sys.path if os.path.isabs(entry))
        return
    prefix = Path(python).parent.parent
    if not (prefix / "pyvenv.cfg").is_file():
        real = Path(os.path.realpath(python))
        yield from _below(real.parent.parent, _numbered(real.name))
        return
    yield from _below(prefix, "")
    settings = _text(prefix / "pyvenv.cfg")
    if re.search(r"^include-system-site-packages\s*=\s*true", settings, re.M | re.I):
        real = Path(os.path.realpath(python))
        yield from _below(real.parent.parent, _numbered(real.name))


def _numbered(name: str) -> str:
    return name if re.fullmatch(r"python3\.\d+", name) else ""


def _below(prefix: Path, version: str) -> Iterator[str]:
    for base in (prefix, prefix / "local"):
        for library in ("lib", "lib64"):
            for folder in sorted((base / library).glob(version or "python3*")):
                for name in ("site-packages", "dist-packages"):
                    if (folder / name).is_dir():
                        yield str(folder / name)
    if (prefix / "lib" / "python3" / "dist-packages").is_dir() and version:
        yield str(prefix / "lib" / "python3" / "dist-packages")


def _locked(directory: Path) -> Version | None:
    for name in _LOCKS:
        text = _text(directory / name)
        found = (_LOCKED_JSON if name == "Pipfile.lock" else _LOCKED).search(text)
        if found:
            return parse(found[1])
    return None


def _required(directory: Path) -> Iterator[str]:
    """What the project's files ask of the version."""
    names = [*_REQUIREMENTS, *(path.name for path in sorted(directory.glob("requirements*.txt")))]
    for name in names:
        lines = [line for line in _text(directory / name).splitlines() if not line.lstrip().startswith("#")]
        text = "\n".join(lines)
        for pattern in (_REQUIRED, _TABLE):
            yield from (found.strip().rstrip(",") for found in pattern.findall(text))


def _text(file: Path) -> str:
    try:
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
