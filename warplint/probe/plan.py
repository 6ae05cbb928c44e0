"""All programs' probes: which findings each may decide, the budget, and one list of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from warplint.combine import combine
from warplint.model import Finding, Program, ProgramStatus, Result, Verdict
from warplint.probe import ProbeReport, ProbeSettings, ProgressEvent, sandbox, synthesised
from warplint.probe import evidence as evidence_scripts
from warplint.probe.account import account_of
from warplint.probe.cache import VerdictCache, key_of
from warplint.probe.facts import Facts, Paths
from warplint.probe.interpreter import Interpreter, NoInterpreter, choose
from warplint.probe.session import paths_of, run_program
from warplint.probe.verdicts import Judged, judge_program

_LEAST = 5.0
"""Seconds that a program needs to start and be measured at all."""


def run_all(
    programs: Sequence[Program],
    findings: Sequence[Finding],
    settings: ProbeSettings,
    progress: Callable[[ProgressEvent], None],
    alone: Sequence[Finding] = (),
) -> ProbeReport:
    """Probes every program and merges their verdicts: the heaviest one wins for a finding.

    ``alone`` are findings about kernels that no program reaches, silent unless they are proved.
    """
    deadline = time.monotonic() + settings.budget
    ordered = sorted(programs, key=lambda p: (p.file, p.arguments))
    done = 0
    notes: dict[str, None] = {}

    def probe_one(program: Program) -> Judged:
        nonlocal done
        progress(ProgressEvent(program.label, "start", done, len(ordered)))
        judged = _probe_program(
            program,
            [f for f in findings if f.location.file in program.closure or f.location.file == program.file],
            settings,
            deadline,
            lambda event: progress(replace(event, done=done, total=len(ordered))),
            notes,
        )
        done += 1
        progress(ProgressEvent(program.label, "done", done, len(ordered)))
        return judged

    if settings.jobs > 1 and len(ordered) > 1:
        with ThreadPoolExecutor(settings.jobs) as pool, sandbox.all_end_with():
            judged = list(pool.map(probe_one, ordered))
    else:
        judged = [probe_one(program) for program in ordered]
    entries = {p.file for p in programs}
    unreached = [f for f in _undecided_by_all(findings, judged) if f.location.file not in entries]
    made_up = synthesised.decide(unreached, alone, settings, deadline, progress)
    for name in _met_nowhere(judged):
        notes[f"--set {name}: no program that was run loads such a module"] = None
    return ProbeReport(
        _merge(findings, judged, made_up),
        tuple(j.row for j in judged),
        tuple(sorted(notes)),  # programs that run at the same time end in any order
        tuple(j.account for j in judged if j.account is not None),
        tuple(objective for j in judged for objective in j.objectives),
    )


def _met_nowhere(judged: Sequence[Judged]) -> list[str]:
    """Constants that were to be replaced and that no program had to do with."""
    ran = [set(one.unmet) for one in judged if one.row.status is not ProgramStatus.BLOCKED]
    return sorted(set.intersection(*ran)) if ran else []


def _probe_program(
    program: Program,
    findings: Sequence[Finding],
    settings: ProbeSettings,
    deadline: float,
    progress: Callable[[ProgressEvent], None],
    notes: dict[str, None],
) -> Judged:
    started = time.monotonic()
    entry = Path(program.file) if Path(program.file).is_absolute() else settings.root / program.file
    paths = paths_of(entry, settings)
    seconds = min(settings.timeout, deadline - started)
    try:
        interpreter = choose(entry, settings.python, settings.root)
    except NoInterpreter as error:
        return judge_program(program, findings, Facts(blocked=str(error)), paths, "")
    if seconds < _LEAST:
        if settings.timeout < _LEAST:
            reason = f"a time limit of {settings.timeout:g} s measures nothing: a program needs {_LEAST:g} s"
        elif settings.budget < _LEAST:
            reason = f"the budget of {settings.budget:g} s measures nothing: a program needs {_LEAST:g} s"
        else:
            reason = f"the budget of {settings.budget:g} s for all programs was used up"
        return judge_program(program, findings, Facts(blocked=reason), paths, interpreter.path)
    cache = VerdictCache.of_user() if settings.cache and not settings.overlay else VerdictCache(None)
    key = key_of(program, findings, interpreter, settings)
    told = cache.get(key)
    if told is not None:
        facts = Facts()
        for message in told:
            facts.take(message)
    else:
        facts, paths, _ = run_program(program, findings, interpreter, settings, seconds, progress)
        cache.put(key, facts, interpreter)
    facts.warp = facts.warp or interpreter.warp
    judged = judge_program(program, findings, facts, paths, interpreter.path)
    if settings.investigate:
        judged = replace(judged, account=account_of(program, facts, paths))
    if settings.evidence and judged.evidence:
        judged = _with_scripts(judged, program, interpreter, paths, settings, notes)
    return replace(judged, row=replace(judged.row, seconds=round(time.monotonic() - started, 2)))


def _with_scripts(
    judged: Judged,
    program: Program,
    interpreter: Interpreter,
    paths: Paths,
    settings: ProbeSettings,
    notes: dict[str, None],
) -> Judged:
    """Writes the evidence scripts and names them in their results; notes where that fails."""
    named: dict[int, Result] = {}
    for result, replay in judged.evidence:
        try:
            harness = evidence_scripts.write(result, replay, program, interpreter, paths, settings)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            notes[f"no evidence was written to {evidence_scripts.DIRECTORY}: {reason}"] = None
            continue
        if result.evidence is not None:
            named[id(result)] = replace(result, evidence=replace(result.evidence, harness=harness))
    return replace(
        judged,
        results=tuple(named.get(id(r), r) for r in judged.results),
        by_finding=tuple((f, named.get(id(r), r)) for f, r in judged.by_finding),
    )


def _undecided_by_all(findings: Sequence[Finding], judged: Sequence[Judged]) -> list[Finding]:
    """The findings that no program has come to."""
    met = {
        id(finding)
        for one in judged
        for finding, result in one.by_finding
        if not (result.reason or "").startswith("not-reached")
    }
    return [finding for finding in findings if id(finding) not in met]


def _merge(
    findings: Sequence[Finding], judged: Sequence[Judged], made_up: Sequence[tuple[Finding, Result]]
) -> tuple[Result, ...]:
    results = [result for _, result in made_up]
    settled = {id(finding) for finding, _ in made_up}
    decided = settled | {id(finding) for one in judged for finding, _ in one.by_finding}
    proved = {
        (result.rule, result.location.file, result.location.line)
        for one in judged
        for result in one.results
        if result.verdict in (Verdict.CONFIRMED, Verdict.LATENT)
    }
    for finding in findings:
        # A run may come where the reading of imports did not: what it proved there is said once.
        place = (finding.rule, finding.location.file, finding.location.line)
        if id(finding) not in decided and place not in proved:
            results.append(_undecided(finding))
    for one in judged:
        results += [result for finding, result in one.by_finding if id(finding) not in settled]
        results += one.results
    return combine(results)


def _undecided(finding: Finding) -> Result:
    """A finding in code that no program imports."""
    return Result(
        rule=finding.rule,
        name="",
        verdict=Verdict.NOTE if finding.is_note else Verdict.UNVERIFIED,
        message=finding.message,
        location=finding.location,
        related=finding.related,
        reason=None if finding.is_note else "no-entry-point",
        help=finding.help,
    )
