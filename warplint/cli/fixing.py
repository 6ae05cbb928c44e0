"""`--fix` and `--diff`: looks for fixes that verify, and writes or shows them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplint import buffers
from warplint.cli import stages
from warplint.cli.options import Options
from warplint.model import Fix, Program, ProgramRow, Result, Rule, Verdict, from_plain, to_plain
from warplint.report.numbers import short

if TYPE_CHECKING:
    from warplint.source.cache import Cache

__all__ = ["Fixed", "fix", "offered"]

_NONE_HELD = "nothing was fixed: no change was measured to make the gradient right"
_OPEN = (Verdict.CONFIRMED, Verdict.LATENT, Verdict.UNVERIFIED)


@dataclass(frozen=True)
class Fixed:
    """What looking for fixes came to: the check of the program as it is now, fixed or not."""

    results: tuple[Result, ...]
    programs: tuple[ProgramRow, ...]
    files: tuple[Any, ...]
    fixed: tuple[Result, ...] = ()
    difference: str = ""
    warnings: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    """The objective over the measured iterations, before and after; it proves nothing."""


def offered(
    results: Sequence[Result], files: Sequence[Any], programs: Sequence[Program], root: Path, cache: Cache
) -> list[Result]:
    """Results with the fix that ``--fix`` would try first; nothing is run for it."""
    wanted = [k for k, result in enumerate(results) if result.verdict in _OPEN and not result.location.cell]
    if not wanted:
        return list(results)
    editable, read = _editable(files, programs), _reader(files, programs, root)
    offers = _known_offers([results[k] for k in wanted], editable, files, read, cache)
    found = dict(zip(wanted, offers, strict=True))
    return [
        result if found.get(k) is None else replace(result, fix=found[k]) for k, result in enumerate(results)
    ]


def _known_offers(
    results: Sequence[Result],
    editable: Sequence[str],
    files: Sequence[Any],
    read: Callable[[str], bytes | None],
    cache: Cache,
) -> list[Fix | None]:
    """The offers for results: those of an earlier run, if nothing that they depend on has changed."""
    from warplint.source.cache import digest

    if cache.file is None:
        return _offers(results, editable, read)
    digests = {file.display: file.digest for file in files}
    key = digest(
        [
            *(json.dumps(to_plain(result), sort_keys=True) for result in results),
            "files",
            *(part for name in editable for part in (name, digests.get(name) or _digest(read(name)))),
        ]
    )
    stored = cache.get("offers", key)
    try:
        if stored is not None and len(stored) == len(results):
            return [None if offer is None else from_plain(Fix, offer) for offer in stored]
    except (TypeError, ValueError, KeyError, AttributeError):
        pass  # damaged: as good as none
    offers = _offers(results, editable, read)
    cache.put("offers", key, to_plain(offers))
    return offers


def _digest(data: bytes | None) -> str:
    return "absent" if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()


def _offers(
    results: Sequence[Result], editable: Sequence[str], read: Callable[[str], bytes | None]
) -> list[Fix | None]:
    from warplint.fixes import RESTRUCTURINGS, candidates
    from warplint.fixes.project import Project

    project = Project(editable, read)
    offers: list[Fix | None] = []
    for result in results:
        if result.rule in RESTRUCTURINGS:
            offers.append(Fix("display", title=result.help or ""))
        elif result.fix is None and (found := candidates(result, project)):
            offers.append(Fix("unsafe", found[0].edits, title=found[0].title))
        else:
            offers.append(None)
    return offers


def fix(
    options: Options,
    rules: Mapping[str, Rule],
    files: Sequence[Any],
    programs: Sequence[Program],
    told: tuple[Sequence[Result], Sequence[ProgramRow], Sequence[Any]],
    progress: Callable[[Any], None],
) -> Fixed:
    """Look for fixes of what is confirmed; write those that verify, or tell them."""
    from warplint.fixes.files import difference
    from warplint.fixes.proof import Search, Trial, identity

    trial = Trial(tuple(told[0]), tuple(told[1]), tuple(told[2]))
    read = _reader(files, programs, options.root)
    runs = _Runs(options, rules, files, programs, trial, progress)
    search = Search(_editable(files, programs), read, runs.run)
    search.wanted = lambda result: _is_shown(result, options, search.contents, read)
    after = search.mend(trial) if options.probe != "none" else trial
    mended = {identity(m.result): m for m in search.mended}
    taken = [m for m in mended.values() if m.fix.applicability == "verified"]
    if options.unsafe_fixes:
        taken += search.make_anyway([r for r in after.results if r.verdict in _OPEN and search.wanted(r)])
    known = {identity(m.result): m.fix for m in (*mended.values(), *taken)}
    before = tuple(replace(r, fix=known.get(identity(r), r.fix)) for r in trial.results)
    was = {file: data for file in search.contents if (data := read(file)) is not None}
    changed = {file: now for file, now in search.contents.items() if now != was.get(file)}
    held = () if changed or not any(_wanted(r, search) for r in trial.results) else (_NONE_HELD,)
    if options.diff:
        return Fixed(before, trial.programs, tuple(files), difference=difference(was, changed), warnings=held)
    problem = _write(options.root, was, changed)
    if problem:
        return Fixed(before, trial.programs, tuple(files), warnings=(problem,))
    if changed and any(r.verdict is Verdict.CONFIRMED for r in after.results):
        after = runs.run(changed, saved=True)  # what is left gets its evidence scripts
    done = {identity(m.result) for m in taken}
    results = tuple(
        r if identity(r) in done else replace(r, fix=known.get(identity(r), r.fix)) for r in after.results
    )
    now = tuple(
        stages.edited(options.root, file.display, changed[file.display]) if file.display in changed else file
        for file in files
    )
    fixed = tuple(replace(m.result, fix=m.fix) for m in taken)
    curves = tuple(_curves(trial, after)) if changed else ()
    return Fixed(results, after.programs, now, fixed, warnings=held, curves=curves)


def _wanted(result: Result, search: Any) -> bool:
    return result.verdict is Verdict.CONFIRMED and bool(search.wanted(result))


def _curves(before: Any, after: Any) -> Iterator[str]:
    """What became of the losses: told, because a right gradient may need another learning rate."""
    told = {(o.program, o.parameter): o.curve for o in before.objectives}
    for objective in after.objectives:
        was = told.get((objective.program, objective.parameter), objective.curve)
        if was != objective.curve:
            first, then = (", ".join(short(value) for value in curve) for curve in (was, objective.curve))
            yield (
                f"{objective.program}: in the measured iterations the objective of `{objective.parameter}` "
                f"was {first} and is {then} with the fix; the learning rate may suit the wrong gradient, so "
                "this is no proof"
            )


def _write(root: Path, was: Mapping[str, bytes], now: Mapping[str, bytes]) -> str | None:
    from warplint.fixes.files import NotWrittenError, write_over

    try:
        write_over({root / file: (was[file], data) for file, data in now.items()})
    except NotWrittenError as error:
        return f"nothing was fixed: {error}"
    return None


def _editable(files: Sequence[Any], programs: Iterable[Program]) -> list[str]:
    """The checked files, and what the programs import of the same tree."""
    # The code of a notebook is not its text: what is written into that would be no notebook.
    names = {file.display for file in files if file.notebook is None}
    names |= {name for program in programs for name in program.closure if not name.startswith(("/", ".."))}
    return sorted(names)


def _reader(files: Sequence[Any], programs: Sequence[Program], root: Path) -> Callable[[str], bytes | None]:
    """The contents of files as they were when they were checked."""
    known = {file.display: file for file in files}
    extra: dict[str, bytes | None] = {}

    def read(name: str) -> bytes | None:
        if name in known:
            return bytes(known[name].data)
        if name not in extra:
            try:
                held = buffers.held(root / name)
                extra[name] = (root / name).read_bytes() if held is None else held
            except OSError:
                extra[name] = None
        return extra[name]

    return read


def _is_shown(
    result: Result, options: Options, contents: Mapping[str, bytes], read: Callable[[str], bytes | None]
) -> bool:
    """Whether the user wants to hear of a result: neither left out nor suppressed."""
    from warplint.source.suppressions import suppressions

    file = result.location.file
    if not options.selection.shows(result.rule, file):
        return False
    data = contents.get(file) or read(file) or b""
    if b"warplint:" not in data:
        return True
    lines = (result.location.line, result.location.end_line)
    comments = suppressions(data.decode("utf-8-sig", "replace"))
    return not comments.covers(result.rule, result.name, lines)


class _Runs:
    """Checks edited files with the programs that use them; what nothing edited touches stays as it was."""

    def __init__(
        self,
        options: Options,
        rules: Mapping[str, Rule],
        files: Sequence[Any],
        programs: Sequence[Program],
        trial: Any,
        progress: Callable[[Any], None],
    ) -> None:
        self.options, self.rules, self.files, self.programs = options, rules, files, programs
        self.trial, self.progress = trial, progress
        self.deadline = time.monotonic() + float(options.settings["budget"])

    def run(self, contents: Mapping[str, bytes], *, saved: bool = False) -> Any:
        from warplint.cli.check import named
        from warplint.fixes.proof import Trial
        from warplint.report.numbers import rounded
        from warplint.source.cache import Cache

        root = self.options.root
        programs = [p for p in self.programs if {p.file, *p.closure}.intersection(contents)]
        names = {name for p in programs for name in (p.file, *p.closure)} | set(contents)
        files = [file for file in self.files if file.display in names and file.display not in contents]
        files += [stages.edited(root, name, data) for name, data in contents.items()]
        files.sort(key=lambda file: file.display)
        static = stages.analyze(
            files, programs, root=root, cache=Cache(), jobs=1, python=self.options.settings.get("python")
        )
        settings = {
            **self.options.settings,
            **({} if saved else {"overlay": tuple(sorted(contents.items())), "evidence": False}),
            "budget": max(self.deadline - time.monotonic(), 1.0),
        }
        probed = stages.probe(programs, static.findings, settings, self.progress)
        labels = {p.label for p in programs}
        rows = {(row.program, row.arguments) for row in probed.programs}
        return Trial(
            results=tuple(
                sorted(
                    (
                        *(rounded(named(result, self.rules)) for result in probed.results),
                        *(r for r in self.trial.results if not _again(r, labels, names)),
                    ),
                    key=lambda result: result.sort_key,
                )
            ),
            programs=(
                *probed.programs,
                *(row for row in self.trial.programs if (row.program, row.arguments) not in rows),
            ),
            objectives=(
                *probed.objectives,
                *(o for o in self.trial.objectives if o.program not in labels),
            ),
        )


def _again(result: Result, labels: set[str], names: set[str]) -> bool:
    """Whether a result of the first check was decided anew."""
    return result.program in labels if result.program else result.location.file in names
