"""What a run's results mean for its exit status."""

from __future__ import annotations

from collections.abc import Mapping

from warplint.model import Precision, ProgramStatus, Report, Result, Rule, Verdict

CLEAN = 0
FAILED = 1
BROKEN = 2
INTERRUPTED = 130

_ORDER = (Precision.LOW, Precision.MEDIUM, Precision.HIGH, Precision.VERY_HIGH)


def exit_status(
    report: Report,
    rules: Mapping[str, Rule],
    *,
    probed: bool,
    strict: bool = False,
    static_fail_on: str = "very-high",
) -> int:
    """0: nothing that fails the run; 1: something does.

    Without a probe nothing can be confirmed, so findings of the rules that are almost never
    wrong take its place.
    """
    if any(_fails(result, rules, probed, strict, static_fail_on) for result in report.results):
        return FAILED
    return FAILED if strict and has_undecided(report) else CLEAN


def has_undecided(report: Report) -> bool:
    """Whether a program could not be run, or was and came to no verdict."""
    undecided = (ProgramStatus.BLOCKED, ProgramStatus.INCONCLUSIVE)
    return any(row.status in undecided for row in report.programs)


def _fails(
    result: Result, rules: Mapping[str, Rule], probed: bool, strict: bool, static_fail_on: str
) -> bool:
    if result.verdict is Verdict.CONFIRMED or result.rule == "WL002":
        return True
    if strict and result.verdict in (Verdict.LATENT, Verdict.UNVERIFIED):
        return True
    if probed or static_fail_on == "never" or result.verdict is not Verdict.UNVERIFIED:
        return False
    rule = rules.get(result.rule)
    return rule is not None and _ORDER.index(rule.precision) >= _ORDER.index(Precision(static_fail_on))
