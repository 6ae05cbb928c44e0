"""The stages of a run, as the command line calls them.

Each imports its room when it is reached: `--version` needs none of them, and `--no-probe`
must not come near the probe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplint.cli.errors import CallError

if TYPE_CHECKING:
    from warplint.model import Finding, Program
    from warplint.source.cache import Cache
    from warplint.source.changes import Changes


def discover(paths: Sequence[Path], *, root: Path, exclude: Sequence[str]) -> Any:
    """The files to check; a path that does not exist is an error in the call."""
    from warplint.source.discovery import SourceError, discover

    try:
        return discover(list(paths), root=root, exclude=tuple(exclude))
    except SourceError as error:
        raise CallError(str(error)) from None


def edited(root: Path, display: str, data: bytes) -> Any:
    """A file of the tree with other contents than it has on the disk."""
    from warplint.source.discovery import SourceFile

    return SourceFile.holding(root / display, display, data)


def open_cache(root: Path, *, enabled: bool) -> Cache:
    """What earlier runs found out about the files below ``root``."""
    from warplint.source.cache import Cache

    return Cache.at(root) if enabled else Cache()


def prepare(files: Sequence[Any], cache: Cache, jobs: int) -> None:
    """Read the files that matter, all at once."""
    from warplint.source.prepare import prepare

    prepare(files, cache, jobs)


def find_programs(
    files: Sequence[Any], root: Path, entries: Sequence[str], cache: Cache, directory: Path | None = None
) -> tuple[Program, ...]:
    """The programs among ``files``, or exactly those that ``entries`` name, run in ``directory``."""
    from warplint.source.discovery import SourceError
    from warplint.source.programs import find_programs, program_for_entry

    if not entries:
        return tuple(find_programs(files, root, cache=cache))
    try:
        return tuple(program_for_entry(entry, root, files, directory) for entry in entries)
    except SourceError as error:
        raise CallError(str(error)) from None


def changes_since(revision: str, root: Path) -> Changes:
    """What git says has changed; without git, or without the revision, the call has failed."""
    from warplint.source.changes import changes_since
    from warplint.source.discovery import SourceError

    try:
        return changes_since(revision, root)
    except SourceError as error:
        raise CallError(f"--changed-since: {error}") from None


def analyze(
    files: Sequence[Any],
    programs: Sequence[Program],
    *,
    root: Path,
    cache: Cache,
    jobs: int,
    alone: bool = False,
    python: str | None = None,
) -> Any:
    """The static pass over all files; with ``alone``, over kernels that no program loads as well.

    ``python`` is the interpreter that was named, if one was.
    """
    from warplint.source.installed import Installed
    from warplint.static import analyze

    warp = Installed(root, python).of
    return analyze(files, programs, root=root, cache=cache, jobs=jobs, alone=alone, warp=warp)


def find_tests(
    findings: Sequence[Finding],
    programs: Sequence[Program],
    files: Sequence[Any],
    root: Path,
    cache: Cache,
) -> tuple[Program, ...]:
    """The tests to be run for findings that no program reaches."""
    from warplint.source.pytests import reaching_tests

    return reaching_tests(findings, programs, files, root, cache)


def probe(
    programs: Sequence[Program],
    findings: Sequence[Finding],
    settings: dict[str, Any],
    progress: Callable[[Any], None],
    alone: Sequence[Finding] = (),
) -> Any:
    """Run the programs and turn findings into verdicts."""
    from dataclasses import fields

    from warplint.probe import ProbeSettings, probe

    known = {field.name for field in fields(ProbeSettings)}
    for name in settings:
        if name not in known:
            # Better than a setting that silently has no effect.
            raise CallError(f"configuration: probe.{name} is not supported by this version")
    if programs and settings.get("python"):
        _require_interpreter(programs[0], settings)
    return probe(programs, findings, ProbeSettings(**settings), progress, alone)


def _require_interpreter(program: Program, settings: dict[str, Any]) -> None:
    """An interpreter that was named must do; one that was found need not."""
    from warplint.probe.interpreter import NoInterpreter, choose

    try:
        choose(settings["root"] / program.file, settings["python"], settings["root"])
    except NoInterpreter as error:
        raise CallError(f"--python: {error}") from None
