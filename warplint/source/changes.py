"""What has changed since a revision, as git sees it: files of the working tree, untracked ones too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from warplint.model import Program
from warplint.source.discovery import SourceError, SourceFile
from warplint.source.facts import FileFacts

__all__ = ["Changes", "changes_since"]


@dataclass(frozen=True)
class Changes:
    """Absolute paths, links resolved."""

    present: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    def touch(self, path: Path) -> bool:
        """Whether the file at ``path`` is new or another."""
        return os.path.realpath(path) in self.present

    def concern(self, program: Program, files: Sequence[SourceFile], root: Path) -> bool:
        """Whether a program imports something that has changed, or names something that is gone."""
        if any(self.touch(root / name) for name in program.closure):
            return True
        if not self.gone:
            return False
        closure = set(program.closure)
        missing = {_module_name(path) for path in self.gone}
        return any(_names(file.facts, missing) for file in files if file.display in closure)


def changes_since(revision: str, start: Path) -> Changes:
    """The changes between ``revision`` and the working tree; ``REV...`` begins where HEAD left REV."""
    top = Path(_git(start, ["rev-parse", "--show-toplevel"]).decode("utf-8", "surrogateescape").rstrip("\n"))
    name = revision.removesuffix("...")
    commit = _commit(name, start)
    if name != revision:
        commit = _git(start, ["merge-base", commit, "HEAD"]).decode().strip()
    listed = _git(top, ["diff", "--name-status", "--no-renames", "-z", commit, "--"])
    fields = _names_in(listed)
    present: set[str] = set()
    gone: set[str] = set()
    for status, path in zip(fields[::2], fields[1::2], strict=False):
        (gone if status == "D" else present).add(os.path.realpath(top / path))
    for path in _names_in(_git(top, ["ls-files", "--others", "--exclude-standard", "-z"])):
        present.add(os.path.realpath(top / path))
    return Changes(frozenset(present), frozenset(gone - present))


def _commit(name: str, start: Path) -> str:
    if not name or name.startswith("-"):
        raise SourceError(f"unknown revision '{name}'")
    try:
        return _git(start, ["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]).decode().strip()
    except SourceError:
        raise SourceError(f"unknown revision '{name}'") from None


def _git(directory: Path, arguments: list[str]) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
        )
    except OSError:
        raise SourceError("git was not found") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SourceError((lines[0] if lines else "git failed").removeprefix("fatal: "))
    return done.stdout


def _names_in(output: bytes) -> list[str]:
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def _module_name(path: str) -> str:
    file = PurePath(path)
    return file.parent.name if file.stem == "__init__" else file.stem


def _names(facts: FileFacts, modules: Iterable[str]) -> bool:
    """Whether an import statement may have meant one of ``modules``."""
    named = {part for item in facts.imports for part in (*item.name.split("."), *item.names)}
    return not named.isdisjoint(modules)
