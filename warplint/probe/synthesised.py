"""Findings about kernels that no program reaches: decided by arguments made up for them.

What is seen this way is ``latent`` at most. A kernel whose adjoint passes the test leaves its findings
as they were: another set of arguments might have shown more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from warplint.model import Finding, Program, Result, Verdict
from warplint.probe import ProbeSettings, ProgressEvent, causes, custom_adjoints
from warplint.probe.cache import VerdictCache, key_of
from warplint.probe.facts import Facts, Paths
from warplint.probe.intent import says_surrogate
from warplint.probe.interpreter import NoInterpreter, choose
from warplint.probe.scratch import project_root
from warplint.probe.session import absolute, run_program

REASON = "synthesised-inputs"
RULES = ("WL301", "WL302", "WL303", "WL304", "WL401", "WL402", "WL403")
LEAST_SECONDS = 10.0
MOST_SECONDS = 60.0
"""For one file."""
SHARE = 0.25
"""Part of the budget of all programs that such files may take."""


def decide(
    undecided: Sequence[Finding],
    alone: Sequence[Finding],
    settings: ProbeSettings,
    deadline: float,
    progress: Callable[[ProgressEvent], None],
) -> list[tuple[Finding, Result]]:
    """Verdicts for those findings that made-up arguments prove; there are none for the others."""
    files: dict[str, list[Finding]] = {}
    for finding in (*undecided, *alone):
        request = finding.request
        if finding.rule in RULES and request is not None:
            files.setdefault(request.kernel_file or finding.location.file, []).append(finding)
    deadline = min(deadline, time.monotonic() + max(MOST_SECONDS, SHARE * settings.budget))
    found: list[tuple[Finding, Result]] = []
    for number, (file, findings) in enumerate(sorted(files.items())):
        if deadline - time.monotonic() < LEAST_SECONDS:
            break
        progress(ProgressEvent(file, "start", number, len(files)))
        made_up = _of_file(file, findings, settings, deadline)
        silent = {id(finding) for finding in alone}
        found += [(f, r) for f, r in made_up if r.verdict is not Verdict.UNVERIFIED or id(f) not in silent]
        progress(ProgressEvent(file, "done", number + 1, len(files)))
    return found


def _of_file(
    file: str, findings: list[Finding], settings: ProbeSettings, deadline: float
) -> list[tuple[Finding, Result]]:
    entry = absolute(file, settings.root)
    try:
        interpreter = choose(entry, settings.python, settings.root)
    except NoInterpreter:
        return []
    kernels = sorted({f.request.kernel for f in findings if f.request is not None and f.request.kernel})
    library = {"kernels": kernels, "functions": any(f.rule in ("WL401", "WL402") for f in findings)}
    program = Program(file, ("(its kernels)",), str(entry.parent))
    cache = VerdictCache.of_user() if settings.cache else VerdictCache(None)
    key = key_of(program, findings, interpreter, settings)
    told = cache.get(key)
    facts = Facts()
    paths = Paths(project_root(entry, settings.root), settings.root)
    if told is not None:
        for message in told:
            facts.take(message)
    else:
        seconds = min(MOST_SECONDS, settings.timeout, deadline - time.monotonic())
        program = replace(program, arguments=())
        facts, paths, _ = run_program(
            program, (), interpreter, settings, seconds, lambda event: None, library=library
        )
        cache.put(key, facts, interpreter)
    found = dict(_by_kernels(facts, findings, paths))
    for finding, result in _by_functions(facts, findings, paths):
        found.setdefault(finding, result)
    for finding in findings:
        kernel = finding.request.kernel if finding.request is not None else None
        if kernel in facts.untried and not finding.is_note:
            why = f"no-entry-point: no program reaches `{kernel}`, and {facts.untried[kernel or '']}"
            found.setdefault(finding, replace(_latent(finding, ""), verdict=Verdict.UNVERIFIED, reason=why))
    return list(found.items())


def _by_kernels(facts: Facts, findings: list[Finding], paths: Paths) -> Iterable[tuple[Finding, Result]]:
    for row in facts.launch_tests:
        if not row["wrong"]:
            continue
        matching = [f for f in findings if _about(f, row, paths)]
        if any(r["what"] == "custom-adjoint" and says_surrogate(r["place"], paths) for r in row["repairs"]):
            continue
        chosen = causes.choose(matching, row, paths) if matching else []
        size = f"is off by {row['error']:.0%}" if row["finite"] else "is not finite"
        for finding in chosen:
            yield finding, _latent(finding, f"on made-up arguments, the adjoint of `{row['kernel']}` {size}")


def _about(finding: Finding, row: dict[str, Any], paths: Paths) -> bool:
    """Whether a finding predicted what a kernel showed; where it is launched does not matter here."""
    request = finding.request
    if request is None or request.kernel is None:
        return False
    return causes.matches(replace(finding, request=replace(request, sites=())), row, paths)


def _by_functions(facts: Facts, findings: list[Finding], paths: Paths) -> Iterable[tuple[Finding, Result]]:
    for row in facts.function_tests:
        if not row["wrong"]:
            continue
        for finding in [*custom_adjoints.predicted(row, findings, paths)][:1]:
            note = custom_adjoints.surrogate_note(row, paths)
            result = _latent(finding, custom_adjoints.numbers(row))
            if note is not None:
                result = replace(result, verdict=Verdict.NOTE, message=note, reason=None, help=None)
            yield finding, result


def _latent(finding: Finding, seen: str) -> Result:
    return Result(
        rule=finding.rule,
        name="",
        verdict=Verdict.LATENT,
        message=finding.message,
        location=finding.location,
        related=finding.related,
        reason=f"{REASON}: {seen}",
        help=finding.help,
    )
