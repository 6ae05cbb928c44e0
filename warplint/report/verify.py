"""The report of `warplint verify`: the verdict first, then what leads to it, in order."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from warplint.model import (
    Account,
    Evidence,
    Iteration,
    Localization,
    Place,
    ProgramRow,
    ProgramStatus,
    Report,
    Result,
    Rule,
    Verdict,
)
from warplint.report.context import Context
from warplint.report.lines import plain
from warplint.report.numbers import percent, rough, short
from warplint.rulebook import sections

SIGNATURES = {
    "correct": "autodiff agrees with finite differences",
    "zero": "the gradient is zero although the objective depends on the parameter: something cuts the "
    "path, such "
    "as an array without requires_grad, a launch outside the tape, a kernel without backward code, a value "
    "that "
    "goes through the host",
    "nan-inf": "the gradient is not finite: a division, a root or a logarithm at its singular point, or an "
    "overflow",
    "stale": "the gradient is an array that changed between its reading and its use",
    "exact-factor": "one constant factor in all directions: a wrong seed, something that is counted twice, "
    "or one of several ways that is cut",
    "grows-with-iterations": "right, or less wrong, in the first iteration: something is carried over from "
    "one to "
    "the next (gradients that are not zeroed, a tape that is entered again)",
    "per-window-only": "every backward pass is right by itself, and together they are not the derivative of "
    "the sum: the state that one hands on to the next is cut",
    "sparse": "wrong in some directions and right in others: some elements go another way (a counter, a "
    "branch, a "
    "value that leaves the tape)",
    "subtly-wrong": "wrong in no simple pattern: an overwritten value, a state that is truncated, or an "
    "adjoint "
    "that is not the derivative",
    "undecided": "it could not be told from the noise",
}
CHECKPOINTING = (
    "checkpointing: keep the state only every n-th step, and run each piece again on a tape of its own, "
    "from the "
    "last piece to the first, handing the adjoint of the state on; the memory is that of n steps and of "
    "the kept "
    "states"
)
_MOST_PLACES = 12
_NOT_PATTERNS = ("WL0", "WL9")


def headline(report: Report) -> str:
    """The verdict in one sentence that a person can act on."""
    status = report.programs[0].status if report.programs else ProgramStatus.BLOCKED
    if status is ProgramStatus.WRONG:
        return _wrong(report)
    if status is ProgramStatus.VERIFIED:
        return _right(report)
    return _unknown(report)


def _wrong(report: Report) -> str:
    found = causes(report)
    if not found:
        return "the gradients are wrong"
    first = found[0]
    if first.rule == "WL901":
        where = report.account.localization if report.account else None
        at = ""
        if where is not None and where.kind != "unknown":
            at = f"; {where.text}"
        unfinished = report.account is not None and bool(report.account.advice)
        why = "the cause was not found in time" if unfinished else "no known pattern is the cause"
        return f"the gradients are wrong, and {why}: {first.message}{at}"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return (
        f"the gradients are wrong because of {first.location.file}:{first.location.line}{more}: "
        f"{first.message} "
        f"({first.rule} {first.name})"
    )


def _right(report: Report) -> str:
    measured = next((r for r in report.results if r.rule == "WL902"), None)
    evidence = measured.evidence if measured else None
    account = report.account or Account()
    text = "the gradients are right"
    checks = [c for c in evidence.checks if c.outcome == "agrees"] if evidence else []
    flat = bool(checks) and all(c.ad == 0.0 and c.fd == 0.0 for c in checks)
    if evidence:
        names = ", ".join(f"`{name.partition(' (')[0]}`" for name in evidence.parameter.split(", "))
        iterations = sorted({c.iteration for c in checks})
        worst = max((c.relative_error for c in checks if abs(c.fd) > c.noise), default=0.0)
        within = f" within {percent(worst)}" if worst > 0 else ""
        plural = "s" if len(iterations) > 1 else ""
        text += (
            f": for {names} autodiff agrees with finite differences{within} "
            f"(iteration{plural} {', '.join(map(str, iterations))})"
        )
    rounded = next((r for r in report.results if r.rule == "WL205" and r.verdict is Verdict.NOTE), None)
    if flat:
        text += ", and zero: the objective is flat here"
        if rounded is not None:
            text += f" ({rounded.location.file}:{rounded.location.line}: {rounded.message})"
        text += "; nothing can be learned where it is piecewise constant, use a surrogate"
    if account.horizon:
        text += "; measured over a shortened horizon, so what only happens later is not covered"
    course = account.course
    if course is not None and course.verdict != "falls":
        text += f"; if training fails, that is not a gradient bug: {course.text}"
    return text


def _unknown(report: Report) -> str:
    row = report.programs[0] if report.programs else None
    reason = (row.reason if row else None) or "the program was not run"
    reason = re.sub(r"^(blocked|not-reached|fd-inconclusive): ", "", reason)
    text = f"it cannot be told whether the gradients are right: {reason}"
    if "staircase" in reason:
        text += "; where the objective is piecewise constant zero is the right gradient, use a surrogate"
    return text


def causes(report: Report) -> list[Result]:
    """Confirmed results, the one that makes the largest difference first."""
    found = [r for r in report.results if r.verdict is Verdict.CONFIRMED]

    def weight(result: Result) -> tuple[bool, float, int]:
        evidence = result.evidence
        removal = evidence.counterfactual if evidence else None
        left = removal.leave_one_out if removal else None
        share = -(left or 0.0) if left is None or math.isfinite(left) else -math.inf
        return (result.rule == "WL901", share, _likelihood(result.rule, evidence))

    return sorted(found, key=lambda r: (*weight(r), r.sort_key))


def _likelihood(rule: str, evidence: Evidence | None) -> int:
    """The place of a rule among the suspects that the numbers point at."""
    suspects = evidence.suspects if evidence else ()
    return suspects.index(rule) if rule in suspects else len(suspects)


def render(report: Report, context: Context) -> str:
    """Render ``report`` for a terminal."""
    from warplint.report.text import Writer

    return _Story(report, context, Writer(context)).text()


class _Story:
    def __init__(self, report: Report, context: Context, writer: object) -> None:
        from warplint.report.text import Writer

        assert isinstance(writer, Writer)
        self.report = report
        self.context = context
        self.writer = writer
        self.account = report.account or Account()
        self.row: ProgramRow | None = report.programs[0] if report.programs else None
        self.causes = causes(report)

    def text(self) -> str:
        blocks = [
            self.verdict(),
            self.measured(),
            self.signature(),
            self.located(),
            *self.cause_blocks(),
            self.unmeasured(),
            self.memory(),
            self.training(),
            self.notes(),
            self.ruled_out(),
            self.tracker(),
            self.versions(),
            self.explained(),
            self.read_on(),
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"

    # -- blocks --------------------------------------------------------------------------

    def title(self, text: str) -> str:
        return self.writer.paint("rule", text)

    def wrap(self, text: str, indent: str = "  ") -> list[str]:
        return self.writer.wrap(text, indent)

    def verdict(self) -> list[str]:
        """The first line is one line, however long: it is what scripts and people look at."""
        style = {ProgramStatus.WRONG: "error", ProgramStatus.VERIFIED: "good"}
        status = self.row.status if self.row else ProgramStatus.BLOCKED
        lines = [self.writer.paint(style.get(status, "warning"), plain(headline(self.report)))]
        unexplained = any(result.rule == "WL901" for result in self.causes)
        for result in self.causes:
            if result.help:
                lines += self.wrap(f"what to do: {result.help}")
        untold = status in (ProgramStatus.INCONCLUSIVE, ProgramStatus.BLOCKED) or unexplained
        for text in self.account.advice if untold else ():
            lines += self.wrap(f"what to do: {text}")
        return lines

    def measured(self) -> list[str]:
        lines = [self.title("what was measured")]
        row = self.row
        if row is None:
            return []
        facts = [" ".join((row.program, *row.arguments))]
        if row.warp:
            facts.append(f"Warp {row.warp}")
        if row.device:
            facts.append(row.device)
        if row.forward_passes:
            facts.append(f"{row.forward_passes} forward pass{'es' if row.forward_passes != 1 else ''}")
        lines += self.wrap(", ".join(facts))
        if self.account.horizon:
            lines += self.wrap(self.account.horizon)
        evidence = self.evidence()
        if evidence is None:
            return lines
        lines += self.wrap(f"parameter {evidence.parameter}; objective {evidence.objective}")
        if evidence.checks:
            plainly = [replace(c, outcome=c.outcome.partition(":")[0]) for c in evidence.checks]
            lines += ["", *self.writer.table(replace(evidence, checks=tuple(plainly)))]
        return lines

    def evidence(self) -> Evidence | None:
        """The measurement that the verdict rests on."""
        ranked = [*self.causes, *(r for r in self.report.results if r.rule in ("WL902", "WL904", "WL903"))]
        return next((r.evidence for r in ranked if r.evidence is not None), None)

    def signature(self) -> list[str]:
        evidence = self.evidence()
        if evidence is None:
            return []
        name = evidence.signature
        meaning = SIGNATURES.get(name.partition("(")[0], "")
        lines = [self.title(f"signature: {name}"), *self.wrap(meaning)]
        if evidence.suspects:
            lines += self.wrap(f"tried in this order: {self.writer.rules(evidence.suspects)}")
        return lines

    def located(self) -> list[str]:
        found = self.account.localization
        if found is None:
            return []
        lines = [self.title("where autodiff and finite difference part"), *self.wrap(found.text)]
        if found.windows:
            lines += ["", *self.places_table(found.windows, "backward call")]
        if found.places:
            lines += ["", *self.places_table(_chosen(found, self.context.verbose), "place on the tape")]
            lines += [
                "",
                *self.wrap(
                    f"along `{found.direction}` of `{found.parameter}`, iteration {found.iteration}; at "
                    "every place: "
                    "what the adjoints there make of the way the arrays move"
                ),
            ]
        return lines

    def places_table(self, places: Sequence[Place], title: str) -> list[str]:
        steps = any(place.step for place in places)
        rows = [["step"] if steps else [], ["autodiff", "finite difference", "relative error", "", title]]
        table = [[*rows[0], *rows[1]]]
        for place in places:
            cells = [str(place.step) if place.step else ""] if steps else []
            where = f" ({place.location.file}:{place.location.line})" if place.location else ""
            cells += [
                short(place.ad),
                short(place.fd),
                percent(place.relative_error),
                place.outcome,
                f"{place.what}{where}",
            ]
            table.append(cells)
        widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
        lines = []
        for number, row in enumerate(table):
            numeric = len(row) - 2
            cells = [cell.rjust(size) for cell, size in zip(row[:numeric], widths, strict=False)]
            cells += [cell.ljust(size) for cell, size in zip(row[numeric:], widths[numeric:], strict=True)]
            text = f"    {'  '.join(cells)}".rstrip()
            style = "dim" if number == 0 else "error" if "differs" in row else ""
            lines.append(self.writer.paint(style, text) if style else text)
        return lines

    def cause_blocks(self) -> list[list[str]]:
        blocks = []
        for number, result in enumerate(self.causes):
            if result.rule == "WL901":
                continue
            title = "the cause" if len(self.causes) == 1 else f"cause {number + 1}"
            lines = [
                self.title(title),
                *self.wrap(f"{self.place(result)} {result.rule} {result.name}: {result.message}"),
            ]
            body = self.writer.excerpt(result)
            if body:
                lines += ["", *(f"  {line}".rstrip() for line in body), ""]
            if result.evidence and result.evidence.counterfactual:
                lines += self.writer.counterfactual(result, result.evidence.counterfactual)
            blocks.append(lines)
        return blocks

    @staticmethod
    def place(result: Result) -> str:
        return f"{result.location.file}:{result.location.line}"

    def unmeasured(self) -> list[str]:
        if self.row is None or self.row.status is not ProgramStatus.INCONCLUSIVE or not self.account.numbers:
            return []
        lines = [self.title("the numbers that show it")]
        for text in self.account.numbers:
            lines += self.wrap(text)
        return lines

    def memory(self) -> list[str]:
        if not self.account.memory:
            return []
        lines = [self.title("memory")]
        for text in (*self.account.memory, CHECKPOINTING):
            lines += self.wrap(text)
        return lines

    def training(self) -> list[str]:
        course = self.account.course
        if course is None:
            return []
        lines = [self.title("training"), *self.wrap(course.text)]
        for text in course.hints:
            lines += self.wrap(text)
        if course.verdict == "falls" and not self.context.verbose:
            return lines
        table = [["iteration", "objective", "update", "along the gradient"]]
        shown = course.iterations if self.context.verbose else _ends(course.iterations)
        for item in shown:
            table.append(
                [
                    str(item.number),
                    short(item.objective),
                    rough(item.update) if item.update is not None else "",
                    rough(item.along) if item.along is not None else "",
                ]
            )
        widths = [max(len(row[k]) for row in table) for k in range(4)]
        lines.append("")
        for number, row in enumerate(table):
            text = (
                f"    {'  '.join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))}".rstrip()
            )
            lines.append(self.writer.paint("dim", text) if number == 0 else text)
        return lines

    def notes(self) -> list[str]:
        lines = []
        for result in self.report.results:
            said = result.verdict is Verdict.NOTE and result.rule not in ("WL902", "WL903", "WL904")
            if said or result.verdict is Verdict.LATENT or result.rule == "WL002":
                lines += self.wrap(
                    f"{self.place(result)} {result.rule} {result.name} ({result.verdict}): {result.message}"
                    + (f" ({result.reason})" if result.reason else "")
                )
            elif result.rule == "WL902" and "; " in result.message:
                lines += self.wrap(result.message.partition("; ")[2])
        return [self.title("also"), *lines] if lines else []

    def ruled_out(self) -> list[str]:
        lines = []
        met = set()
        evidence = self.evidence()
        for result in sorted(self.report.results, key=lambda r: _likelihood(r.rule, evidence)):
            if result.verdict in (Verdict.DISMISSED, Verdict.UNVERIFIED) and result.rule != "WL002":
                met.add(result.rule)
                word = "" if result.verdict is Verdict.DISMISSED else "not decided: "
                lines += self.wrap(
                    f"{self.place(result)} {result.rule} {result.name}: "
                    f"{word}{self.writer.reason(result.reason or '')}"
                )
        met |= {result.rule for result in self.report.results}
        rest = [r for r in self.context.rules if not r.startswith(_NOT_PATTERNS) and r not in met]
        if self.row is None or self.row.status is not ProgramStatus.BLOCKED:  # else nobody looked
            lines += self.wrap(f"looked for and not met: {_folded(rest)}")
        return [self.title("looked for and ruled out"), *lines] if lines else []

    def tracker(self) -> list[str]:
        lines: list[str] = []
        for text in dict.fromkeys(t for r in self.report.results if r.evidence for t in r.evidence.tracker):
            lines += self.wrap(text)
        return [self.title("Warp's overwrite tracker"), *lines] if lines else []

    def versions(self) -> list[str]:
        warp = self.row.warp if self.row else None
        if not warp:
            return []
        lines = []
        concerned = [r for r in self.report.results if r.verdict in (Verdict.CONFIRMED, Verdict.LATENT)]
        # What is true of this version alone concerns every program on it.
        special = [r.id for r in self.context.rules.values() if _ends_at(r.versions, warp)]
        for rule in dict.fromkeys([*(r.rule for r in concerned), *special]):
            text = _version_text(self.context.rules.get(rule))
            if text:
                lines += self.wrap(f"{rule}: {text}")
        return [self.title(f"Warp {warp}"), *lines] if lines else []

    def explained(self) -> list[str]:
        if not self.context.explain:
            return []
        lines = []
        for text in self.account.explained:
            lines += self.wrap(text)
        evidence = self.evidence()
        for text in evidence.covered if evidence else ():
            lines += self.wrap(f"covered: {text}" if not text.startswith("not covered") else text)
        return [self.title("how it was found"), *lines] if lines else []

    def read_on(self) -> list[str]:
        lines = []
        for result in self.causes:
            if result.docs:
                lines += self.wrap(
                    f"{result.rule} is explained by `warplint rule {result.rule}` and {result.docs}"
                )
            if result.evidence and result.evidence.harness:
                lines += self.wrap(f"these numbers again: python {result.evidence.harness}")
        return [self.title("read on"), *dict.fromkeys(lines)] if lines else []


def _chosen(found: Localization, all_of_them: bool) -> Sequence[Place]:
    """The places around where they part, and some on both sides, from the loss backwards."""
    places = found.places
    if all_of_them or len(places) <= _MOST_PLACES:
        return places
    parting = next((k for k, place in enumerate(places) if place.outcome == "differs"), len(places) - 1)
    near = set(range(max(0, parting - 2), min(len(places), parting + 3))) | {0, len(places) - 1}
    rest = [k for k in range(len(places)) if k not in near]
    wanted = _MOST_PLACES - len(near)
    near |= {rest[int(i * (len(rest) - 1) / max(1, wanted - 1))] for i in range(min(wanted, len(rest)))}
    return [places[k] for k in sorted(near)]


def _ends(iterations: Sequence[Iteration]) -> Sequence[Iteration]:
    return iterations if len(iterations) <= 10 else [*iterations[:6], *iterations[-4:]]


def _folded(rules: Sequence[str]) -> str:
    """WL101 WL102 WL103 … as ``WL101-WL103``, where they follow each other."""
    runs: list[list[str]] = []
    for rule in rules:
        number = int(rule[2:])
        if runs and int(runs[-1][-1][2:]) == number - 1:
            runs[-1].append(rule)
        else:
            runs.append([rule])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _ends_at(versions: str, warp: str) -> bool:
    """Whether a rule holds for this version of Warp but no longer for later ones."""
    bound = re.search(r"<(=?)(\d+)\.(\d+)", versions)
    mine = re.match(r"(\d+)\.(\d+)", warp)
    if bound is None or mine is None:
        return False
    last, here = (int(bound[2]), int(bound[3])), (int(mine[1]), int(mine[2]))
    return here < last or (bool(bound[1]) and here == last)


def _version_text(rule: Rule | None) -> str:
    if rule is None:
        return ""
    return " ".join(sections(rule.text).get("Versions", "").split())
