"""From what a run told to verdicts: the only place that says ``confirmed``.

Promise 1 of the product: a cause is confirmed when the consumed gradient differs from finite
differences by more than the noise, and the cause belongs to a minimal set whose joint removal
brings the difference within noise while putting it back alone brings it back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from warplint.model import (
    Account,
    Counterfactual,
    Evidence,
    Finding,
    Location,
    Program,
    ProgramRow,
    ProgramStatus,
    Related,
    Removal,
    Result,
    Verdict,
)
from warplint.probe import Objective, causes, covered, custom_adjoints, progress
from warplint.probe.advice import advice
from warplint.probe.facts import Facts, Paths
from warplint.probe.intent import says_detached
from warplint.probe.names import parameter_key
from warplint.probe.records import Records
from warplint.probe.rows import (
    by_parameter,
    first_objectives,
    is_weak,
    is_wrong,
    weak_reason,
    with_copies_held,
)
from warplint.probe.signature import HINTS, signature

UNMEASURED_RULES = ("rough", "quantised", "chaotic", "staircase", "noise", "kink", "uncertain", "not finite")
"""Words of an inconclusive reason that speak of the objective rather than of the program."""


@dataclass(frozen=True)
class Judged:
    """One program's row and the results it gives, by finding where there is one."""

    row: ProgramRow
    results: tuple[Result, ...]
    by_finding: tuple[tuple[Finding, Result], ...]
    evidence: tuple[tuple[Result, dict[str, Any]], ...] = ()
    """Results that deserve an evidence script, with what it replays."""
    unmet: tuple[str, ...] = ()
    """Constants that were to be replaced, of modules that the program does not load."""
    account: Account | None = None
    """What is told beside the verdicts, if it was asked for."""
    objectives: tuple[Objective, ...] = ()


def judge_program(
    program: Program, findings: Sequence[Finding], facts: Facts, paths: Paths, interpreter: str
) -> Judged:
    """Turns the facts of one run into verdicts for ``findings`` and results of its own."""
    return _Judge(program, findings, facts, paths, interpreter).judge()


class _Judge:
    def __init__(
        self, program: Program, findings: Sequence[Finding], facts: Facts, paths: Paths, interpreter: str
    ) -> None:
        self.program = program
        self.findings = findings
        self.facts = facts
        self.paths = paths
        self.interpreter = interpreter
        self.results: list[Result] = []
        self.decided: dict[int, Result] = {}
        self.replays: list[tuple[Result, dict[str, Any]]] = []
        self.records = Records(program, findings, facts, paths)
        self.names = self.records.names

    def judge(self) -> Judged:
        facts = self.facts
        if facts.blocked is not None or not (facts.episodes or facts.nothing):
            reason = facts.blocked or facts.internal_error or "the probe ended without a result"
            return self.blocked(reason)
        if facts.nothing is not None:
            if facts.nothing.startswith("blocked: "):
                return self.blocked(facts.nothing.removeprefix("blocked: "))
            self.note(
                "WL903",
                f"no gradient of this program could be measured: {_tail(facts.nothing)}",
                facts.nothing,
            )
            self.leave_unverified(facts.nothing)
            return self.finish(ProgramStatus.INCONCLUSIVE, facts.nothing)
        self.judge_solvers()
        parameters = by_parameter(facts.episodes)
        wrong = [rows for rows in parameters if is_wrong(rows)]
        if wrong and all(self.is_surrogate(rows) for rows in wrong):
            self.say_what_is_meant(wrong)
            reason = "a surrogate stands in for the derivative"
            self.leave_unverified(f"fd-inconclusive: {reason}")
            return self.finish(ProgramStatus.INCONCLUSIVE, reason)
        if wrong and all(self.is_ambiguous(rows) for rows in wrong):
            self.say_what_is_meant(wrong)
            reason = "a selection among equal numbers has more than one derivative"
            self.leave_unverified(f"fd-inconclusive: {reason}")
            return self.finish(ProgramStatus.INCONCLUSIVE, reason)
        unmeant = [rows for rows in wrong if not self.meant(rows)]
        if unmeant:
            self.wrong(unmeant)
            return self.finish(ProgramStatus.WRONG, None)
        if wrong:
            self.verified([self.held(rows) for rows in parameters])
            self.say_what_is_meant(wrong)
            return self.finish(ProgramStatus.VERIFIED, covered.not_measured(parameters))
        weak = [rows for rows in parameters if is_weak(rows)]
        if weak:
            reason = weak_reason(weak[0])
            self.inconclusive(weak[0], reason)
            return self.finish(ProgramStatus.INCONCLUSIVE, reason)
        self.verified(parameters)
        self.say_what_is_drawn(parameters[0])
        return self.finish(ProgramStatus.VERIFIED, covered.not_measured(parameters))

    # -- endings -------------------------------------------------------------------------

    def blocked(self, reason: str) -> Judged:
        self.note("WL903", f"this program could not be probed: {reason}", reason)
        self.leave_unverified(f"blocked: {reason}")
        return self.finish(ProgramStatus.BLOCKED, reason)

    def inconclusive(self, rows: list[dict[str, Any]], reason: str) -> None:
        about_objective = any(word in reason for word in UNMEASURED_RULES)
        rule = "WL904" if about_objective else "WL903"
        self.note(
            rule,
            f"the gradient of {self.names.quoted(rows[0])} could not be measured: {reason}",
            f"fd-inconclusive: {reason}",
            location=self.records.backward(rows),
            evidence=self.records.evidence(rows),
        )
        if "kink" in reason:
            self.say_where_it_is_tied()
        self.wrong_by_themselves(reason)
        self.wrong_functions(f"the whole gradient could not be measured ({reason})")
        self.leave_unverified(f"fd-inconclusive: {reason}")

    def wrong_by_themselves(self, reason: str) -> None:
        """Kernels whose adjoint fails its own test, where the gradient as a whole cannot be measured."""
        for row in self.facts.launch_tests:
            if not row["wrong"] or self.say_what_one_is(row):
                continue
            why = (
                f"the whole gradient could not be measured ({reason}); at a launch of `{row['kernel']}` by "
                f"itself, the adjoint is off by {row['error']:.0%}"
            )
            matching = [f for f in self.findings if causes.matches(f, row, self.paths)]
            for finding in causes.choose(matching, row, self.paths):
                self.decide(finding, Verdict.LATENT, why)
            if not matching:
                named = self.named_result(causes.describe(row, self.paths), None)
                self.results.append(replace(named, verdict=Verdict.LATENT, reason=why))

    def wrong_functions(self, reason: str) -> None:
        """Custom adjoints that are not the derivatives of their functions, whatever the gradient says."""
        for row in self.facts.function_tests:
            predicted = [*custom_adjoints.predicted(row, self.findings, self.paths)]
            if not row["wrong"] or any(id(f) in self.decided for f in predicted):
                continue
            if custom_adjoints.surrogate_note(row, self.paths) is not None:
                continue
            result = custom_adjoints.latent(row, self.program, reason, self.paths)
            if predicted:
                self.decide(predicted[0], Verdict.LATENT, result.reason)
            elif not any(
                r.rule in custom_adjoints.RULES and r.location == result.location for r in self.results
            ):
                self.results.append(result)

    def failing_launch(self, finding: Finding) -> dict[str, Any] | None:
        """A kernel that a finding points at and whose launches fail their own test."""
        for row in self.facts.launch_tests:
            if row["wrong"] and causes.matches(finding, row, self.paths):
                return row
        return None

    def judge_solvers(self) -> None:
        """Findings about a solver's number of turns, whatever the gradient is."""
        for finding in self.findings:
            asked = finding.request
            if asked is None or asked.counterfactual is not Counterfactual.MORE_TURNS:
                continue
            places = {(s.file, s.line) for s in asked.sites}
            rows = [
                row
                for row in self.facts.solvers
                if places == {(self.paths.display(str(file)), int(line)) for file, line, _ in row["sites"]}
            ]
            if not rows:
                self.decide(finding, Verdict.UNVERIFIED, "more turns could not be tried")
            elif (text := progress.stopped_early(rows[0])) is not None:
                self.decide(finding, Verdict.NOTE, text)
            else:
                self.decide(finding, Verdict.DISMISSED, "more turns do not move the objective")

    def verified(self, parameters: list[list[dict[str, Any]]]) -> None:
        self.wrong_functions("what reaches this gradient is right")
        for finding in self.findings:
            if id(finding) in self.decided:
                continue
            hazard = self.hazard_of(finding)
            if self.says_meant(finding):
                self.decide(finding, Verdict.DISMISSED, "the code says that this is held constant on purpose")
            elif hazard is not None:
                values = hazard["kind_of_cause"] == Counterfactual.RESTORE_VALUES.value
                what = "the values changed in this run" if values else "it happened in this run"
                self.decide(
                    finding, Verdict.LATENT, f"{what}, but the gradient {'did not' if values else 'is right'}"
                )
            elif self.failing_launch(finding) is not None:
                self.decide(
                    finding,
                    Verdict.LATENT,
                    "this kernel's adjoint is wrong by itself, but not for what reaches this gradient",
                )
            elif any(r["outcome"].startswith("inconclusive") for rows in parameters for r in rows):
                self.decide(
                    finding, Verdict.UNVERIFIED, "an iteration that may hold it could not be measured"
                )
            elif self.records.was_reached(finding):
                self.decide(finding, Verdict.DISMISSED, "the code ran and the gradient is right within noise")
            else:
                self.decide(finding, Verdict.UNVERIFIED, "not-reached")
        names = ", ".join(self.names.quoted(rows[0]) for rows in parameters)
        ruled_out = tuple(
            sorted({f.rule for f in self.findings if self.decided[id(f)].verdict is Verdict.DISMISSED})
        )
        self.note(
            "WL902",
            f"the gradient of {names} is right: autodiff agrees with finite differences "
            f"at {covered.iterations(parameters)}{covered.conditions(parameters, self.facts, self.paths)}",
            None,
            location=self.records.backward(parameters[0]),
            evidence=self.records.evidence(
                [r for rows in parameters for r in rows],
                covered=covered.lines(parameters, self.records),
                ruled_out=ruled_out,
            ),
        )
        checks = [c for rows in parameters for r in rows for c in r["checks"]]
        if any("kink" in c["outcome"] for c in checks):
            self.say_where_it_is_tied()

    def say_what_is_drawn(self, rows: list[dict[str, Any]]) -> None:
        text = progress.drawn_anew(self.facts.step)
        if text is not None:
            self.note("WL510", text, None, location=self.records.backward(rows))

    def meant(self, rows: list[dict[str, Any]]) -> bool:
        """Whether all of the difference flows through what the code calls detached or constant."""
        wrong = [r for r in rows if r["outcome"] == "differs"]
        if all(r["constant"] and all(says_detached(p, self.paths) for p in r["constant"]) for r in wrong):
            return True
        found = self.attributions_of(rows)
        return bool(found) and all(a["resolved"] and causes.meant(a["confirmed"], self.paths) for a in found)

    def is_surrogate(self, rows: list[dict[str, Any]]) -> bool:
        """Whether the difference comes from custom adjoints that are not meant to be derivatives."""
        found = self.attributions_of(rows)
        return bool(found) and all(
            a["resolved"]
            and all(c["kind_of_cause"] == "adjoint" and causes.note(c, self.paths) for c in a["confirmed"])
            for a in found
        )

    def say_where_it_is_tied(self) -> None:
        """Kernels that select among equals, where the objective has a corner."""
        for row in self.facts.launch_tests:
            if causes.ambiguous([row]):
                named = causes.describe(row, self.paths)
                self.note(named.rule, named.message, None, location=named.location)

    def is_ambiguous(self, rows: list[dict[str, Any]]) -> bool:
        """Whether the difference comes from ties: each choice has a derivative of its own."""
        found = self.attributions_of(rows)
        return bool(found) and all(a["resolved"] and causes.ambiguous(a["confirmed"]) for a in found)

    def say_what_is_meant(self, wrong: list[list[dict[str, Any]]]) -> None:
        """Notes on causes that are on purpose, where a user should know of them."""
        for cause in [c for rows in wrong for a in self.attributions_of(rows) for c in a["confirmed"]]:
            self.say_what_one_is(cause)

    def say_what_one_is(self, cause: dict[str, Any]) -> bool:
        """A note on a cause that is on purpose; False if it is none."""
        text = causes.note(cause, self.paths)
        named = causes.describe(cause, self.paths)
        if text is None:
            return False
        if any(r.rule == named.rule for r in self.results):
            return True
        predicted = [f for f in self.findings if causes.matches(f, cause, self.paths)]
        for finding in predicted:
            self.decide(finding, Verdict.NOTE, text)
        if not predicted:
            self.note(named.rule, text, None, location=named.location)
        return True

    def says_meant(self, finding: Finding) -> bool:
        """Whether a finding speaks of a path that the code cuts on purpose."""
        found = [c for a in self.facts.attributions for c in a["confirmed"]]
        return any(causes.matches(finding, c, self.paths) and causes.meant([c], self.paths) for c in found)

    def held(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows of a parameter as measured with what is meant as constant held constant."""
        found = {a["iteration"]: a for a in self.attributions_of(rows)}
        if not found or all(r["constant"] for r in rows if r["outcome"] == "differs"):
            return [with_copies_held(row) for row in rows]
        kept = []
        for row in rows:
            attribution = found.get(row["iteration"])
            if attribution is not None:
                held = attribution["held"]
                checks = [
                    {**c, **held.get(c["direction"], {}), "outcome": "agrees"}
                    for c in row["checks"]
                    if c["outcome"] == "agrees" or c["direction"] in held
                ]
                places = [causes.place(c) for c in attribution["confirmed"]]
                kept.append({**row, "checks": checks, "constant": places, "outcome": "agrees"})
            elif row["outcome"] != "differs":
                kept.append(row)
        return kept

    def wrong(self, parameters: list[list[dict[str, Any]]]) -> None:
        explained = False
        unexplained: list[list[dict[str, Any]]] = []
        for rows in parameters:
            attributions = self.attributions_of(rows)
            if not attributions:
                continue
            if not attributions[0]["resolved"]:
                unexplained.append(rows)
                continue
            explained = True
            for attribution in attributions:
                self.confirm(rows, attribution)
        if not explained and not unexplained:
            unexplained = [parameters[0]]
        for rows in unexplained[:1] if not explained else []:
            self.mismatch(rows)
        for finding in self.findings:
            if id(finding) in self.decided:
                continue
            if not self.records.was_reached(finding):
                self.decide(finding, Verdict.UNVERIFIED, "not-reached")
            elif explained and not unexplained:
                self.decide(finding, Verdict.DISMISSED, "the gradient is wrong, but not because of this")
            else:
                self.decide(finding, Verdict.UNVERIFIED, self.why_unexplained(unexplained))

    def why_unexplained(self, unexplained: list[list[dict[str, Any]]]) -> str:
        """Why a finding is not decided where the gradient is wrong for unknown reasons."""
        searches = [a for rows in unexplained for a in self.attributions_of(rows)]
        if searches and not any(a["problem"] for a in searches):
            return "the gradient is wrong, and taking this away alone does not mend it"
        why = next((a["problem"] for a in searches), "no cause was looked for")
        return f"the gradient is wrong, but whether this is why was not found out: {why}"

    def confirm(self, rows: list[dict[str, Any]], attribution: dict[str, Any]) -> None:
        named = [(cause, causes.describe(cause, self.paths)) for cause in attribution["confirmed"]]
        members = tuple(n.removal for _, n in named)
        predicted = [c for c, _ in named if any(causes.matches(f, c, self.paths) for f in self.findings)]
        told = [causes.underlying(c, attribution["causes"])["key"] for c in predicted]
        for cause, name in named:
            behind = cause
            if cause not in predicted:
                behind = causes.underlying(cause, attribution["causes"])
                mistake = cause["key"] in told or (
                    behind is not cause and any(c["key"] == behind["key"] for c, _ in named)
                )
                if mistake:
                    continue  # one mistake, seen in what is read and in what is computed from it
            if causes.meant([cause], self.paths):
                continue  # it takes its part of the difference away, but it is no mistake
            removal = Removal(
                removed=name.removal,
                relative_error=attribution["after"],
                alone=cause["alone"],
                leave_one_out=cause["leave_one_out"],
                set=members,
            )
            evidence = self.records.evidence(rows, removal=removal)
            matching = [f for f in self.findings if causes.matches(f, behind, self.paths)]
            matching = causes.choose(matching, behind, self.paths)
            replay = self.records.replay(rows, attribution)
            about_report = any(r.get("reported") for r in rows)  # a script measures what is seeded
            if matching:
                finding = matching[0]
                for other in matching:
                    if id(other) not in self.decided:
                        seen = causes.seen(cause, self.paths) if other is finding else ()
                        result = self.decide(other, Verdict.CONFIRMED, None, evidence, seen)
                        if other is finding and not about_report:
                            self.replays.append((result, replay))
                continue
            result = self.named_result(causes.describe(behind, self.paths), evidence)
            if not any(r.rule == result.rule and r.location == result.location for r in self.results):
                self.results.append(result)
                if not about_report:
                    self.replays.append((result, replay))

    def named_result(self, named: causes.Named, evidence: Evidence | None) -> Result:
        location, message = named.location, named.message
        return Result(
            rule=named.rule,
            name="",
            verdict=Verdict.CONFIRMED,
            message=message,
            location=location,
            related=named.related,
            program=self.program.label,
            evidence=evidence,
            help=named.help,
        )

    def suspected(self, rows: list[dict[str, Any]]) -> tuple[Related, ...]:
        """Places that the static pass points at and nothing rules out, the likeliest first."""
        order = self.records.suspects(rows)
        open_ones = [
            f
            for f in self.findings
            if id(f) not in self.decided and not f.is_note and self.records.was_reached(f)
        ]
        ranked = sorted(open_ones, key=lambda f: (order.index(f.rule), f.location))
        return tuple(Related(f.location, f"suspected, not proved: {f.rule}, {f.message}") for f in ranked)

    def mismatch(self, rows: list[dict[str, Any]]) -> None:
        attribution = next(iter(self.attributions_of(rows)), None)
        kind = signature(rows)
        worst = max(
            (
                c["relative_error"]
                for r in rows
                if r["outcome"] == "differs"
                for c in r["checks"]
                if c["outcome"] == "differs"
            ),
            default=math.inf,
        )
        size = "and is not finite"
        if math.isfinite(worst):
            size = f"by up to {worst:.0%}" if worst < 10.0 else f"by up to {worst:.2g} times its size"
        text = f"the gradient of {self.names.quoted(rows[0])} differs from finite differences {size}"
        places = [place for row in rows for place in row["constant"]]
        if places:
            held = covered.constants(places, self.paths)
            text += f"; {held} computed from it and copied through the host off the tape"
        elif attribution is not None and (attribution["after"] or math.inf) < 0.5 * attribution["before"]:
            text += "; taking the known causes away explains only part of it"
        result = Result(
            rule="WL901",
            name="gradient-mismatch",
            verdict=Verdict.CONFIRMED,
            message=text,
            location=self.records.backward(rows),
            program=self.program.label,
            related=self.suspected(rows),
            evidence=self.records.evidence(rows),
            help=HINTS.get(kind.split("(")[0]),
        )
        self.results.append(result)
        self.replays.append((result, self.records.replay(rows, None)))

    # -- helpers -------------------------------------------------------------------------

    def attributions_of(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What explains a parameter's difference: at its first wrong iteration, and what a later one adds."""
        key = parameter_key(rows[0])
        return [a for a in self.facts.attributions if parameter_key(a) == key and a["outcome"] == "differs"]

    def hazard_of(self, finding: Finding) -> dict[str, Any] | None:
        """The cause at work in the run that a finding predicted."""
        for attribution in self.facts.attributions:
            for cause in attribution["causes"]:
                if causes.matches(finding, cause, self.paths) and causes.happened(finding, cause):
                    return dict(cause)
        return None

    def decide(
        self,
        finding: Finding,
        verdict: Verdict,
        reason: str | None,
        evidence: Evidence | None = None,
        seen: tuple[Related, ...] = (),
    ) -> Result:
        if finding.is_note:
            verdict, reason = Verdict.NOTE, None
        result = Result(
            rule=finding.rule,
            name="",
            verdict=verdict,
            message=finding.message,
            location=finding.location,
            related=finding.related + seen,
            program=self.program.label,
            reason=reason,
            evidence=evidence,
            help=finding.help,
        )
        self.decided[id(finding)] = result
        return result

    def leave_unverified(self, reason: str) -> None:
        for finding in self.findings:
            if id(finding) not in self.decided:
                self.decide(finding, Verdict.UNVERIFIED, reason)

    def note(
        self,
        rule: str,
        message: str,
        reason: str | None,
        *,
        location: Location | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        self.results.append(
            Result(
                rule=rule,
                name="",
                verdict=Verdict.NOTE,
                message=message,
                location=location or Location(self.program.file, 1),
                program=self.program.label,
                reason=reason,
                evidence=evidence,
                help=advice(reason or message, self.program) if rule == "WL903" else None,
            )
        )

    def finish(self, status: ProgramStatus, reason: str | None) -> Judged:
        facts = self.facts
        row = ProgramRow(
            program=self.program.name,
            arguments=self.program.arguments,
            interpreter=self.interpreter,
            warp=facts.warp,
            device=facts.device,
            status=status,
            reason=reason,
            parameters=tuple(dict.fromkeys(self.records.parameter_label(r) for r in facts.episodes)),
            substitutions=tuple(facts.substitutions),
            forward_passes=facts.forward_passes,
        )
        pairs = tuple((f, self.decided[id(f)]) for f in self.findings if id(f) in self.decided)
        return Judged(
            row,
            tuple(self.results),
            pairs,
            tuple(self.replays),
            tuple(facts.unmet),
            objectives=tuple(first_objectives(self.program.label, facts.episodes)),
        )


def _tail(reason: str) -> str:
    return reason.partition(": ")[2] or reason
