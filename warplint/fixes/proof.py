"""Which fixes are right: each is tried on the edited program, with the ordinary probe.

A fix counts as verified when the program that it mends measures right, or when its finding is gone
and nothing is confirmed that was not confirmed before. A fix that brings another finding to light
waits: it is verified together with the fix of that one, or not at all.
"""

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from warplint.fixes import candidates
from warplint.fixes.project import Candidate, Project
from warplint.fixes.source import apply_edits
from warplint.fixes.translate import translate_back
from warplint.model import Edit, Fix, ProgramRow, ProgramStatus, Result, Verdict

if TYPE_CHECKING:
    from warplint.probe import Objective

__all__ = ["Mended", "Outcome", "Search", "Trial", "compare"]

TRIALS = 12
TRIALS_A_FINDING = 6
"""Runs of edited programs in one call, for all and for each finding; each takes seconds."""
_SAME = 1e-4
_CLOSE = 0.02
_MEASURED = (ProgramStatus.VERIFIED, ProgramStatus.WRONG)


@dataclass(frozen=True)
class Trial:
    """What a check of the (edited) files came to."""

    results: tuple[Result, ...]
    programs: tuple[ProgramRow, ...]
    objectives: tuple[Objective, ...] = ()


class Outcome(enum.Enum):
    """What a trial says about a change."""

    VERIFIED = "every program that runs the edited code is measured right"
    BETTER = "the finding is gone, and nothing new is confirmed"
    REVEALED = "the finding is gone, and another one has come to light"
    UNDECIDED = "it could not be measured"
    REFUTED = "it mends nothing, or changes what the program computes"


@dataclass(frozen=True)
class Mended:
    """A result with the change that was found for it."""

    result: Result
    fix: Fix


Files = Mapping[str, bytes]
Identity = tuple[str, str, str]
Runner = Callable[[Files], Trial]


@dataclass
class Search:
    """Looks for changes that verify. ``read`` gives the files as they are, ``run`` checks edited ones."""

    files: Sequence[str]
    read: Callable[[str], bytes | None]
    run: Runner
    wanted: Callable[[Result], bool] = lambda result: True
    trials_left: int | None = None
    mended: list[Mended] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    """The edited files."""
    _stages: list[tuple[Edit, ...]] = field(default_factory=list)
    """The edits made so far, by step."""
    _failed: Counter[Identity] = field(default_factory=Counter)

    def mend(self, trial: Trial) -> Trial:
        """Mend what can be; the check of the edited files comes back."""
        if self.trials_left is None:
            confirmed = sum(r.verdict is Verdict.CONFIRMED for r in trial.results)
            self.trials_left = TRIALS + TRIALS_A_FINDING * confirmed
        waiting: list[Mended] = []
        sure = (trial, dict(self.contents), len(self._stages))
        while self.trials_left:
            step = self._step(trial)
            if step is None:
                break
            trial, self.contents, edits, found = step.after, step.contents, step.edits, step.mended
            waiting += [self._translated(m) for m in found]
            self._stages.append(edits)
            if step.outcome is Outcome.VERIFIED or (
                step.outcome is Outcome.BETTER and len(waiting) == len(found)
            ):
                self.mended += [_verified(m, trial) for m in waiting]
                waiting, sure = [], (trial, dict(self.contents), len(self._stages))
        trial, self.contents, kept = sure
        del self._stages[kept:]
        known = {identity(m.result) for m in self.mended}
        self.mended += [m for m in waiting if identity(m.result) not in known]
        return trial

    def _step(self, trial: Trial) -> _Step | None:
        """The first change, or set of changes, that helps."""
        project = self._project()
        targets = [r for r in trial.results if r.verdict is Verdict.CONFIRMED and self.wanted(r)]
        targets.sort(key=lambda r: self._failed[identity(r)])
        options = [(r, found) for r in targets if (found := candidates(r, project))]
        revealed: _Step | None = None
        undecided: dict[Identity, Mended] = {}
        for chosen in _attempts(options):
            if not self.trials_left:
                break
            edits = tuple(dict.fromkeys(e for _, candidate in chosen for e in candidate.edits))
            contents = self._edited(edits)
            if contents is None:
                continue
            self.trials_left -= 1
            after = self.run(contents)
            outcome = compare(
                trial, after, [result for result, _ in chosen], all(c.same_values for _, c in chosen)
            )
            here = [Mended(result, _fix("unsafe", candidate, worst(result))) for result, candidate in chosen]
            step = _Step(outcome, after, contents, edits, here)
            if outcome in (Outcome.VERIFIED, Outcome.BETTER) or (
                outcome is Outcome.REVEALED and _all_suspected(trial, after)
            ):
                return step
            if outcome is Outcome.REVEALED:
                revealed = revealed or step
            if len(chosen) == 1:
                self._failed[identity(chosen[0][0])] += 1
                if outcome is Outcome.UNDECIDED:
                    undecided.setdefault(identity(chosen[0][0]), self._translated(here[0]))
        if revealed is None:
            self.mended += undecided.values()
        return revealed

    def make_anyway(self, results: Sequence[Result]) -> list[Mended]:
        """Edit the files with fixes that could not be measured; what was refuted is never made."""
        undecided = {identity(m.result): m for m in self.mended if m.fix.applicability != "verified"}
        project, edits, made = self._project(), tuple[Edit, ...](), []
        for result in results:
            known = undecided.get(identity(result))
            if known is None and result.verdict is Verdict.CONFIRMED:
                continue  # all that is known was tried
            found = candidates(result, project)
            if known is not None:
                found = [candidate for candidate in found if candidate.title == known.fix.title]
            if found and self._edited(together := (*edits, *(e for e in found[0].edits if e not in edits))):
                made.append(self._translated(Mended(result, _fix("unsafe", found[0], worst(result)))))
                edits = together
        self.contents = self._edited(edits) or self.contents
        self._stages.append(edits)
        return made

    def _project(self) -> Project:
        return Project(self.files, lambda file: self.contents.get(file, self.read(file)))

    def _edited(self, edits: Sequence[Edit]) -> dict[str, bytes] | None:
        """The files with edits made; None where they get in each other's way."""
        contents = dict(self.contents)
        try:
            for file in dict.fromkeys(edit.location.file for edit in edits):
                data = contents.get(file, self.read(file))
                if data is None:
                    return None
                contents[file] = apply_edits(data, [e for e in edits if e.location.file == file])
        except ValueError:
            return None
        return contents

    def _translated(self, m: Mended) -> Mended:
        """Edits of edited files as edits of the files as they are on the disk."""
        edits = translate_back(m.fix.edits, self._stages)
        return replace(m, fix=replace(m.fix, edits=edits or ()))


@dataclass(frozen=True)
class _Step:
    outcome: Outcome
    after: Trial
    contents: dict[str, bytes]
    edits: tuple[Edit, ...]
    mended: list[Mended]


def _fix(applicability: str, candidate: Candidate, before: float | None) -> Fix:
    return Fix(applicability, candidate.edits, before, None, candidate.title)


def _attempts(
    options: Sequence[tuple[Result, list[Candidate]]],
) -> Iterator[list[tuple[Result, Candidate]]]:
    """All results at once with what is most likely, those of each program, then each by itself."""
    if len(options) > 1:
        yield [(result, found[0]) for result, found in options]
    programs = {result.program for result, _ in options}
    for program in sorted(map(str, programs)) if len(programs) > 1 else ():
        of_program = [(result, found[0]) for result, found in options if str(result.program) == program]
        if len(of_program) > 1:
            yield of_program
    for result, found in options:
        for candidate in found:
            yield [(result, candidate)]


def compare(before: Trial, after: Trial, targets: Sequence[Result], same_values: bool) -> Outcome:
    """What a change did, from the checks before and after it."""
    rows = {_label(row): row for row in before.programs}
    touched = [row for row in after.programs if _label(row) in rows]
    if not touched or any(r.rule == "WL002" for r in after.results):
        return Outcome.REFUTED
    for row in touched:
        if row.status is ProgramStatus.BLOCKED and rows[_label(row)].status is not ProgramStatus.BLOCKED:
            return Outcome.REFUTED
    comparable = _values_agree(before, after)
    if same_values and comparable is False:
        return Outcome.REFUTED
    right = all(row.status is ProgramStatus.VERIFIED for row in touched)
    slopes = _slopes_agree(before, after)
    if (right and slopes is False) or not _same_parameters(before, after):
        return Outcome.REFUTED
    known_values = comparable if same_values else slopes
    was, now = _heavy(before.results), _heavy(after.results)
    if any(now[identity(t)] >= was[identity(t)] for t in targets):
        return Outcome.REFUTED
    if any(row.status not in _MEASURED for row in touched) or known_values is None:
        return Outcome.UNDECIDED
    if any(r.verdict is Verdict.LATENT and not was[identity(r)] for r in after.results):
        return Outcome.UNDECIDED  # a new hazard, which only this data does not show
    if right:
        return Outcome.VERIFIED
    confirmed = Counter(identity(r) for r in after.results if r.verdict is Verdict.CONFIRMED)
    known = Counter(identity(r) for r in before.results if r.verdict is Verdict.CONFIRMED)
    if confirmed - known:
        # A mismatch that nothing explains is no finding that a next fix could take up.
        new = {identity[0] for identity in confirmed - known}
        return Outcome.REFUTED if new == {"WL901"} else Outcome.REVEALED
    return Outcome.BETTER


def _all_suspected(before: Trial, after: Trial) -> bool:
    """Whether all that came to light was there before, hidden behind what is mended now."""
    known = {identity(r) for r in before.results}
    return all(identity(r) in known for r in after.results if r.verdict is Verdict.CONFIRMED)


def _heavy(results: Sequence[Result]) -> Counter[Identity]:
    """How often each finding is confirmed or latent."""
    heavy = (Verdict.CONFIRMED, Verdict.LATENT)
    return Counter(identity(r) for r in results if r.verdict in heavy)


def identity(result: Result) -> Identity:
    """A name of a finding that survives a change of line numbers."""
    return (result.rule, result.location.file, re.sub(r"\d+", "#", result.message))


def _label(row: ProgramRow) -> tuple[str, tuple[str, ...]]:
    return (row.program, row.arguments)


def _values_agree(before: Trial, after: Trial) -> bool | None:
    """Whether the programs still compute the same objective; None where nothing can be compared."""
    told = {(o.program, o.parameter): o for o in before.objectives}
    pairs = [(told[key], o) for o in after.objectives if (key := (o.program, o.parameter)) in told]
    if not pairs:
        return None
    if not _as_long(before, after):
        return None
    return all(_close(a, b) for a, b in pairs)


def _slopes_agree(before: Trial, after: Trial) -> bool | None:
    """Whether autodiff now agrees with the finite differences of the program before the change.

    They are taken at the same place in the first iteration. What a changed program is compared with
    by itself may have been changed with it: seeds, above all.
    """
    told = {
        (o.program, o.parameter, s.direction): s
        for o in before.objectives
        for s in o.slopes
        if math.isfinite(s.fd) and math.isfinite(s.noise)
    }
    pairs = [
        (told[key], s)
        for o in after.objectives
        for s in o.slopes
        if (key := (o.program, o.parameter, s.direction)) in told
    ]
    if not pairs or not _as_long(before, after):
        return None
    return all(
        abs(s.ad - was.fd) <= _CLOSE * max(abs(s.ad), abs(was.fd)) + 3.0 * (was.noise + s.noise)
        for was, s in pairs
        if math.isfinite(s.ad)
    )


def _as_long(before: Trial, after: Trial) -> bool:
    """Whether the programs were measured over as many steps."""
    lengths = {_label(row): row.substitutions for row in before.programs}
    return all(lengths.get(_label(row), row.substitutions) == row.substitutions for row in after.programs)


def _same_parameters(before: Trial, after: Trial) -> bool:
    """Whether everything that was measured still is, in the programs that could be measured."""
    measured = {row.program for row in after.programs if row.status in _MEASURED}
    names = [{(o.program, o.parameter) for o in trial.objectives} for trial in (before, after)]
    told = {program for program, _ in names[1]}
    return {pair for pair in names[0] if pair[0] in told} <= names[1] or not measured


def _close(a: Objective, b: Objective) -> bool:
    if not (math.isfinite(a.value) and math.isfinite(b.value)):
        return not math.isfinite(a.value)  # a fix may make finite what was not
    return abs(a.value - b.value) <= _SAME * max(abs(a.value), abs(b.value)) + 4.0 * max(a.sigma, b.sigma)


def worst(result: Result) -> float | None:
    """The largest relative error among the checks of a result."""
    checks = result.evidence.checks if result.evidence else ()
    return max((c.relative_error for c in checks if not c.outcome.startswith("inconclusive")), default=None)


def _verified(m: Mended, trial: Trial) -> Mended:
    """A fix with the error that is left in the program that its finding was confirmed in."""
    left = [worst(r) for r in trial.results if r.rule == "WL902" and r.program == m.result.program]
    after = max((error for error in left if error is not None), default=None)
    return replace(m, fix=replace(m.fix, applicability="verified", after=after))
