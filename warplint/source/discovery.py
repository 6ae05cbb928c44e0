"""Which files are checked, and what each of them is before anything is parsed.

A directory is walked the way git sees it: ``.gitignore`` files and the usual build and
environment folders are respected. A file named on the command line is always taken. A file
that cannot be used is a record with a ``problem``, never an exception.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from warplint import buffers
from warplint.source.facts import FileFacts, uses_of
from warplint.source.notebooks import Notebook, is_notebook, read_notebook

if TYPE_CHECKING:
    import pathspec

__all__ = ["DEFAULT_EXCLUDES", "MAX_BYTES", "Discovery", "SourceError", "SourceFile", "discover", "screen"]

MAX_BYTES = 2_000_000
"""Files above this size are generated data, not programs somebody reads."""
MAX_NOTEBOOK_BYTES = 50_000_000
"""Notebooks hold pictures as well."""

DEFAULT_EXCLUDES = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".warplint",
    "__pycache__",
    "__pypackages__",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
"""Directory names that are never entered (unless they are named on the command line)."""

_MANUAL_ADJOINT = re.compile(rb"adjoint\s*=\s*True")
_KERNELS = re.compile(rb"@\s*[\w.]*\b(?:kernel|func_grad)\b")


class SourceError(Exception):
    """The call named something that is not there; the message is one line for the user."""


def screen(data: bytes) -> bool:
    """Whether a file can hold differentiated Warp code at all; decided on bytes, before parsing."""
    if b"warp" not in data:
        return False
    if b"Tape" in data or b".backward(" in data:
        return True
    return b"adjoint" in data and _MANUAL_ADJOINT.search(data) is not None


@dataclass(frozen=True)
class SourceFile:
    """One Python file of the checked tree."""

    path: Path
    """Absolute path."""
    display: str
    """POSIX path, relative to the root when below it: what every ``Location.file`` says."""

    @classmethod
    def holding(cls, path: Path, display: str, data: bytes) -> SourceFile:
        """A file that holds ``data``, whatever lies on the disk: what an editor has not saved."""
        file = cls(path, display)
        file.__dict__["_read"] = (data, None)
        return file

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file; empty if it is unreadable or too large."""
        return self._loaded[0]

    @cached_property
    def text(self) -> str:
        """The decoded text; empty when ``problem`` says that it is not UTF-8."""
        return self._decoded[0]

    @property
    def decodes(self) -> bool:
        """Whether it could be read as text."""
        return not (self._loaded[1] or self._decoded[1])

    @cached_property
    def screened(self) -> bool:
        """Whether the byte screen lets the file through."""
        return screen(self.data)

    @cached_property
    def has_kernels(self) -> bool:
        """Whether the file seems to define kernels or custom adjoints; decided on bytes, too."""
        return b"warp" in self.data and _KERNELS.search(self.data) is not None

    @cached_property
    def problem(self) -> str | None:
        """Why the file cannot be checked, in words, or None.

        Text and syntax are looked at only in files that mention Warp: nobody asked this tool to
        check anything else, and parsing a large tree takes seconds.
        """
        return self.not_python if self._loaded[1] or b"warp" in self.data else None

    @property
    def not_python(self) -> str | None:
        """Why the file is no Python that can be read, whatever it speaks of, or None."""
        return self._loaded[1] or self._decoded[1] or self.facts.problem

    @property
    def problem_place(self) -> tuple[int, int]:
        """Line and column of what is not Python or not UTF-8, or 1, 1."""
        if b"warp" not in self.data:
            return 1, 1
        if self._decoded[1]:
            return self._decoded[2]
        return self.facts.line, self.facts.column

    @cached_property
    def facts(self) -> FileFacts:
        """What its syntax says; see ``prepare`` for many files at a time."""
        return FileFacts.of(self.text)

    @cached_property
    def uses(self) -> dict[str, frozenset[str]]:
        """What each of its functions and classes calls, by simple name."""
        return uses_of(self.text)

    @cached_property
    def digest(self) -> str:
        """A name for the contents of the file."""
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()

    @cached_property
    def _loaded(self) -> tuple[bytes, str | None]:
        if self.notebook is not None:
            return self.notebook.text.encode("utf-8", "surrogatepass"), self.notebook.problem
        return self._read

    @property
    def bytes_read(self) -> bytes:
        """The file as it is, a notebook, too."""
        return self._read[0]

    @cached_property
    def notebook(self) -> Notebook | None:
        """Its cells, if it is a notebook; ``data`` is then their code."""
        if not is_notebook(self.path.name):
            return None
        data, problem = self._read
        if problem:
            return Notebook("", problem=problem)
        return read_notebook(data) if b"warp" in data else Notebook("")

    @cached_property
    def _read(self) -> tuple[bytes, str | None]:
        held = buffers.held(self.path)
        if held is not None:
            return held, None
        most = MAX_NOTEBOOK_BYTES if is_notebook(self.path.name) else MAX_BYTES
        try:
            size = self.path.stat().st_size
            if size > most:
                return b"", f"larger than {most // 1_000_000} MB ({size} bytes)"
            return self.path.read_bytes(), None
        except OSError as error:
            return b"", f"cannot be read: {error.strerror or error}"

    @cached_property
    def _decoded(self) -> tuple[str, str | None, tuple[int, int]]:
        try:
            return self.data.decode("utf-8-sig"), None, (1, 1)
        except UnicodeDecodeError as error:
            before = error.object[: error.start]  # without a byte order mark
            line = before.count(b"\n") + 1
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
            return "", f"not UTF-8 (line {line})", (line, column)


@dataclass(frozen=True)
class Discovery:
    """The result of a walk: files in the order of their display paths."""

    root: Path
    files: tuple[SourceFile, ...]
    passed_over: tuple[str, ...] = ()
    """What is not checked although it was named or lies in the tree: a line each, with the reason."""

    @property
    def problems(self) -> tuple[SourceFile, ...]:
        """The files that cannot be checked."""
        return tuple(f for f in self.files if f.problem)

    @property
    def candidates(self) -> tuple[SourceFile, ...]:
        """The files that pass the byte screen."""
        return tuple(f for f in self.files if f.screened)


def display_path(path: Path, root: Path) -> str:
    """How a path is shown: relative to ``root`` when it lies below, absolute otherwise."""
    below, shown = f"{root.as_posix().rstrip('/')}/", path.as_posix()
    if shown.startswith(below):
        return shown[len(below) :]
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return shown


def discover(paths: Sequence[str | Path], *, root: Path | str, exclude: Sequence[str] = ()) -> Discovery:
    """Collect the Python files below ``paths``.

    ``exclude`` holds globs in gitignore syntax, relative to ``root``; they apply to files that
    are named outright as well, because a configuration means what it says.
    """
    root = Path(os.path.abspath(root))
    excluded = _spec(exclude)
    found: dict[Path, SourceFile] = {}
    passed_over: dict[str, None] = {}
    for item in paths:
        path = Path(os.path.abspath(root / item))
        if not os.path.exists(path) and buffers.held(path) is None:
            raise SourceError(f"no such file or directory: {item}")
        if path.is_dir():
            closed: list[tuple[Path, str]] = []
            candidates = [*_walk(path, closed), *_unsaved(path)]
            for directory, why in closed:
                passed_over[f"{display_path(directory, root)}: {why}; nothing in it was checked"] = None
        elif buffers.held(path) is None and (reason := _no_python(path)):
            passed_over[f"{display_path(path, root)}: {reason}"] = None
            continue
        else:
            candidates = [path]
        for file in candidates:
            shown = display_path(file, root)
            if file not in found and not (excluded and excluded.match_file(shown)):
                found[file] = SourceFile(file, shown)
    return Discovery(root, tuple(sorted(found.values(), key=lambda f: f.display)), tuple(passed_over))


def _unsaved(top: Path) -> Iterator[Path]:
    """Files that so far exist in an editor alone."""
    for path in buffers.below(top):
        parts = path.relative_to(top).parts
        if (
            path.suffix in (".py", ".ipynb")
            and not path.exists()
            and not set(parts).intersection(DEFAULT_EXCLUDES)
        ):
            yield path


def _no_python(path: Path) -> str | None:
    """Why a file that was named is not checked, or None where it is Python."""
    if not path.is_file():
        return "not checked: not a regular file"
    if path.suffix in (".py", ".pyw", ".pyi", ".ipynb"):
        return None
    try:
        with path.open("rb") as stream:
            first = stream.readline(200)
    except OSError:
        return None  # to be reported as a file that cannot be read
    if first.startswith(b"#!") and b"python" in first:
        return None
    return "not checked: not a Python file"


def _spec(lines: Sequence[str]) -> pathspec.PathSpec | None:
    lines = [line for line in lines if line.strip()]
    if not lines:
        return None
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(lines)


def _read_gitignore(directory: Path) -> pathspec.PathSpec | None:
    try:
        text = (directory / ".gitignore").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    try:
        return _spec(text.splitlines())
    except ValueError:
        return None


def _inherited(top: Path) -> list[tuple[Path, pathspec.PathSpec]]:
    """The ignore files between the root of the repository and ``top`` (exclusive)."""
    chain: list[tuple[Path, pathspec.PathSpec]] = []
    if os.path.exists(top / ".git"):
        return chain
    for parent in top.parents:
        spec = _read_gitignore(parent)
        if spec is not None:
            chain.insert(0, (parent, spec))
        if (parent / ".git").exists():
            return chain
    return []  # not inside a repository: stray ignore files of parents do not count


def _walk(top: Path, closed: list[tuple[Path, str]]) -> Iterator[Path]:
    """The Python files below ``top``; directories that cannot be read are put into ``closed``."""
    stack = [(top, _inherited(top))]
    while stack:
        directory, specs = stack.pop()
        own = _read_gitignore(directory)
        if own is not None:
            specs = [*specs, (directory, own)]
        try:
            entries = sorted(os.scandir(directory), key=lambda e: e.name)
        except OSError as error:
            closed.append((directory, f"cannot be read: {error.strerror or error}"))
            continue
        for entry in entries:
            path = Path(entry.path)
            try:
                is_directory = entry.is_dir(follow_symlinks=False)
            except OSError:
                continue
            if is_directory:
                if entry.name not in DEFAULT_EXCLUDES and not _ignored(path, specs, directory=True):
                    stack.append((path, specs))
            elif not entry.name.endswith((".py", ".ipynb")) or not _is_file(entry):
                continue  # a pipe, an editor's lock file, a link to what is gone: nobody asked for it
            elif not _ignored(path, specs, directory=False):
                yield path


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _ignored(path: Path, specs: list[tuple[Path, pathspec.PathSpec]], *, directory: bool) -> bool:
    # The innermost ignore file that has an opinion decides, as in git.
    for base, spec in reversed(specs):
        relative = path.relative_to(base).as_posix() + ("/" if directory else "")
        include = spec.check_file(relative).include
        if include is not None:
            return include
    return False
