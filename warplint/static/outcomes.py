"""What is interpreted, and what it came to: from earlier runs, or by several processes.

Programs come first, then the files with functions that no program calls: a function is seen in its
real context where it has one. Entries do not depend on each other otherwise, so it does not matter
who works on them, and an entry whose files are all the same need not be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplint.model import Finding, Program, from_plain, to_plain
from warplint.source.cache import Cache, digest
from warplint.source.discovery import SourceFile
from warplint.source.imports import ImportResolver
from warplint.source.prepare import remember
from warplint.source.programs import is_test
from warplint.source.workers import run_all
from warplint.static import StaticResult
from warplint.versions import Version

__all__ = ["Entry", "Outcome", "analyze_files"]

Warp = Callable[[Path], Version | None]
"""The version of Warp that a program runs with, where that is known."""


@dataclass(frozen=True)
class Entry:
    """One interpretation: a program, or a file with functions that no program calls."""

    file: SourceFile
    covered: frozenset[str] = frozenset()
    """Functions of the file that a program has already shown in their real context."""
    warp: Version | None = None
    """The version of Warp that it runs with, where that is known."""


@dataclass(frozen=True)
class Outcome:
    """What one entry came to."""

    findings: tuple[Finding, ...] = ()
    skipped: tuple[str, ...] = ()
    error: str = ""
    called: tuple[str, ...] = ()
    """Functions that were called, each as file and qualified name with a blank between them."""
    imported: tuple[str, ...] = ()
    """The files that were loaded."""
    recorded: tuple[str, ...] = ()
    """Kernels that are launched on a tape, each as file and name with a blank between them."""


def analyze_files(
    files: Sequence[SourceFile],
    programs: Sequence[Program],
    root: Path,
    cache: Cache,
    jobs: int,
    alone: bool = False,
    warp: Warp = lambda file: None,
) -> StaticResult:
    """The findings of all entries, sorted, each once."""
    resolver = ImportResolver(files, root, cache)
    if cache.file is None:
        return _analyze(files, programs, resolver, cache, jobs, alone, warp)
    places = sorted({f.path.parent for f in files} | {(resolver.root / p.file).parent for p in programs})
    key = digest(
        [
            "result",
            "alone" if alone else "",
            *(_written(warp(place / "program.py")) for place in places),
            *(p.file for p in programs),
            *(x for f in files for x in (f.display, f.digest)),
        ]
    )
    stored = cache.get("outcomes", key)
    try:
        if stored is not None and resolver.still_holds(stored):
            result: StaticResult = from_plain(StaticResult, stored["result"])
            return result
    except (TypeError, ValueError, KeyError, AttributeError):
        pass  # damaged: as good as none
    result = _analyze(files, programs, resolver, cache, jobs, alone, warp)
    remember(resolver.known, cache)
    if not result.internal_errors:
        cache.put("outcomes", key, {"result": to_plain(result), **resolver.seen()})
    return result


def _analyze(
    files: Sequence[SourceFile],
    programs: Sequence[Program],
    resolver: ImportResolver,
    cache: Cache,
    jobs: int,
    alone: bool,
    warp: Warp,
) -> StaticResult:
    work = _Work(resolver, cache, jobs)
    chosen = _programs(files, programs, resolver)
    outcomes = work.run([Entry(file, warp=warp(file.path)) for file in chosen])
    imported = {display for outcome in outcomes for display in outcome.imported}
    called = {name for outcome in outcomes for name in outcome.called}
    seen = {file.path for file in chosen}
    rest = []
    for file in files:
        if not file.screened or file.path in seen:
            continue
        covered = frozenset(n for n in file.facts.taped if f"{file.display} {n}" in called)
        if covered.issuperset(file.facts.taped) and (file.display in imported or not file.facts.tape):
            continue  # a library that a program has already shown in its real context
        rest.append(Entry(file, covered, warp(file.path)))
    outcomes += work.run(rest)
    found = [finding for outcome in outcomes for finding in outcome.findings]
    unique = {_place(f): f for f in reversed(found)}
    ordered = sorted(unique.values(), key=lambda f: f.sort_key)
    skipped = {item for outcome in outcomes for item in outcome.skipped}
    errors = {outcome.error for outcome in outcomes if outcome.error}
    unsaid: list[Finding] = []
    if alone:
        loaded = imported | {file.display for file in chosen}
        libraries = [f for f in files if f.has_kernels and f.display not in loaded and not is_test(f.path)]
        recorded = frozenset(name for outcome in outcomes for name in outcome.recorded)
        by_themselves, error = work.find_alone(libraries, recorded, warp)
        unsaid = sorted({f for f in by_themselves if _place(f) not in unique}, key=lambda f: f.sort_key)
        errors |= {error} if error else set()
    return StaticResult(tuple(ordered), tuple(unsaid), tuple(sorted(skipped)), tuple(sorted(errors)))


def _written(version: Version | None) -> str:
    return f"warp {version}"


def _place(finding: Finding) -> tuple[str, str, int]:
    return finding.rule, finding.location.file, finding.location.line


def _programs(
    files: Sequence[SourceFile], programs: Sequence[Program], resolver: ImportResolver
) -> list[SourceFile]:
    by_name = {f.display: f for f in files}
    chosen: dict[Path, SourceFile] = {}
    for program in programs:
        if program.reaches_tape:
            path = (resolver.root / program.file).absolute()
            file = by_name.get(program.file) or resolver.file(path)
            if file is not None:
                chosen.setdefault(file.path, file)
    return list(chosen.values())


class _Work:
    """Outcomes of entries, looked up or worked out."""

    def __init__(self, resolver: ImportResolver, cache: Cache, jobs: int) -> None:
        self.resolver = resolver
        self.cache = cache
        self.jobs = jobs
        self._runner: Callable[[Entry], Outcome] | None = None

    def run(self, entries: Sequence[Entry]) -> list[Outcome]:
        keys = [self._key(entry) for entry in entries] if self.cache.file is not None else []
        known = [self._recall(key) for key in keys] or [None] * len(entries)
        missing = [k for k, outcome in enumerate(known) if outcome is None]
        made: list[Outcome] = []
        if missing:
            run_entry = self._prepared()  # loaded here, once, before any process is started
            made = run_all(lambda k: run_entry(entries[missing[k]]), len(missing), self.jobs)
        for position, outcome in zip(missing, made, strict=True):
            known[position] = outcome
            if keys and not outcome.error:
                self._keep(keys[position], entries[position], outcome)
        return [outcome for outcome in known if outcome is not None]

    def find_alone(
        self, files: Sequence[SourceFile], recorded: frozenset[str], warp: Warp
    ) -> tuple[tuple[Finding, ...], str]:
        """What is said of kernels in files that no program loads."""
        if not files:
            return (), ""
        from warplint.static.alone import find_alone
        from warplint.static.host.core import Project

        return find_alone(files, Project(self.resolver), recorded, warp)

    def _prepared(self) -> Callable[[Entry], Outcome]:
        if self._runner is None:
            from warplint.static.host.core import Project
            from warplint.static.run import run_entry

            project = Project(self.resolver)
            self._runner = lambda entry: run_entry(entry, project)
        return self._runner

    def _key(self, entry: Entry) -> str:
        closure = self.resolver.closure(entry.file)
        return digest(
            [
                entry.file.display,
                _written(entry.warp),
                *sorted(entry.covered),
                "files",
                *(part for file in closure for part in (file.display, file.digest)),
            ]
        )

    def _keep(self, key: str, entry: Entry, outcome: Outcome) -> None:
        # A submodule can be reached as an attribute of its package, without an import of it.
        closure = {file.display for file in self.resolver.closure(entry.file)}
        beside = {name: self._digest(name) for name in outcome.imported if name not in closure}
        self.cache.put("outcomes", key, {"outcome": to_plain(outcome), "beside": beside})

    def _recall(self, key: str) -> Outcome | None:
        stored = self.cache.get("outcomes", key)
        try:
            if stored is None or any(self._digest(n) != d for n, d in stored["beside"].items()):
                return None
            outcome: Outcome = from_plain(Outcome, stored["outcome"])
        except (TypeError, ValueError, KeyError, AttributeError):
            return None
        return outcome

    def _digest(self, display: str) -> str | None:
        file = self.resolver.file(self.resolver.root / display)
        return file.digest if file is not None else None
