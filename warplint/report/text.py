"""The terminal report: what a person reads, once, from top to bottom."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import replace

from warplint.model import Evidence, Fix, ProgramRow, ProgramStatus, Removal, Report, Result, Verdict
from warplint.report.context import Context, fails_as_error, says_more
from warplint.report.excerpt import excerpt
from warplint.report.lines import plain
from warplint.report.numbers import percent, rough, short

_ANSI = {
    "place": "1",
    "rule": "1",
    "error": "1;31",
    "warning": "33",
    "note": "36",
    "good": "32",
    "frame": "2;34",
    "primary": "1;31",
    "secondary": "36",
    "dim": "2",
}
_VERDICT_STYLE = {
    Verdict.CONFIRMED: "error",
    Verdict.LATENT: "warning",
    Verdict.UNVERIFIED: "warning",
    Verdict.DISMISSED: "dim",
    Verdict.NOTE: "note",
}
_REASONS = {
    "probing-disabled": "the program was not run; without --no-probe it is measured",
    "no-entry-point": "no program was found that reaches this code; name one with --entry",
    "not-reached": "the programs that were run did not come here",
    "timeout": "the program did not finish in time; see --timeout, --set and --entry",
    "synthesised-inputs": "seen on made-up kernel inputs only",
}
_MOST_CHECKS = 6
_MOST_PROGRAMS = 12
_INDENT = "  "


def render(report: Report, context: Context) -> str:
    """Render ``report`` for a terminal; colour only where the context asks for it."""
    if report.account is not None:
        from warplint.report import verify

        return verify.render(report, context)
    writer = Writer(context, fixing=report.fixed is not None)
    if context.quiet:
        return "".join(writer.one_line(result) for result in report.results)
    blocks = [writer.result(result) for result in report.results]
    if report.fixed:
        blocks.append(writer.fixed(report.fixed))
    rows = writer.without_what_is_said(report)
    if writer.programs_are_news(rows):
        blocks.append(writer.programs(rows))
    if context.statistics and report.results:
        blocks.append(writer.statistics(report.results))
    notices = [line for notice in report.notices for line in writer.wrap(notice, "")]
    blocks.append([*notices, writer.summary(report)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


class Writer:
    def __init__(self, context: Context, *, fixing: bool = False) -> None:
        self.context = context
        self.fixing = fixing
        """Whether `--fix` has written what holds: what is left was not measured to be right."""
        self.width = max(40, context.width)

    def paint(self, style: str, text: str) -> str:
        if not self.context.color or not text:
            return text
        return f"\033[{_ANSI[style]}m{text}\033[0m"

    def one_line(self, result: Result) -> str:
        return f"{self.heading(result)}: {plain(result.message)}\n"

    def heading(self, result: Result) -> str:
        place = result.location
        style = "error" if fails_as_error(result) else _VERDICT_STYLE[result.verdict]
        if result.rule == "WL902":
            style = "good"
        return (
            f"{self.paint('place', f'{plain(place.source)}:{place.line}:{place.column}')} "
            f"{self.paint('rule', f'{result.rule} {result.name}')}  "
            f"{self.paint(style, str(result.verdict))}"
        )

    def result(self, result: Result) -> list[str]:
        lines = [self.heading(result), *self.wrap(result.message)]
        body = self.excerpt(result)
        if body:
            lines += ["", *(f"{_INDENT}{line}".rstrip() for line in body), ""]
        if result.evidence:
            lines += self.evidence(result, result.evidence)
        elif result.location.cell and result.reason == "no-entry-point":
            lines += self.wrap("not proved: no-entry-point (notebooks are read, not run)")
        elif result.reason and says_more(result):
            lines += self.wrap(f"{self.because(result)}: {self.reason(result.reason)}")
        if result.help:
            lines += self.wrap(f"help: {result.help}")
        if result.fix and result.fix.edits:
            lines += self.wrap(f"fix: {result.fix.title or 'a fix is known'} ({self.how_sure(result.fix)})")
        if result.evidence and result.evidence.harness:
            lines += self.wrap(f"evidence: {result.evidence.harness}")
        if result.docs and self.context.verbose:
            lines += self.wrap(f"docs: {result.docs}")
        while not lines[-1]:
            lines.pop()
        return lines

    def how_sure(self, fix: Fix) -> str:
        if fix.applicability != "verified":
            return "not applied: not measured to be right" if self.fixing else "not measured; --fix tries it"
        if fix.before is None or fix.after is None:
            return "verified"
        return f"verified: {percent(fix.before)} -> {percent(fix.after)}"

    def fixed(self, results: tuple[Result, ...]) -> list[str]:
        lines = [self.paint("dim", "fixed")]
        for result in results:
            place, fix = result.location, result.fix
            lines += self.wrap(f"{place.file}:{place.line}:{place.column} {result.rule} {result.name}")
            if fix:
                sure = "not verified" if fix.applicability != "verified" else self.how_sure(fix)
                lines += self.wrap(f"{fix.title} ({sure})", _INDENT * 2)
        return lines

    def excerpt(self, result: Result) -> list[str]:
        """The code, except where the result is about a program and not about a line."""
        whole_program = result.rule.startswith("WL9") and result.verdict is Verdict.NOTE
        if whole_program and not self.context.verbose:
            return []
        return excerpt(result, self.context.read_source, self.paint, self.width - len(_INDENT))

    def rules(self, ids: tuple[str, ...]) -> str:
        """Rules by id and name."""
        known = self.context.rules
        return ", ".join(f"{rule} {known[rule].name}" if rule in known else rule for rule in ids)

    @staticmethod
    def because(result: Result) -> str:
        return "not proved" if result.verdict is Verdict.UNVERIFIED else "why"

    @staticmethod
    def reason(reason: str) -> str:
        return f"{reason} ({_REASONS[reason]})" if reason in _REASONS else reason

    def evidence(self, result: Result, evidence: Evidence) -> list[str]:
        program = f" in {result.program}" if result.program else ""
        passes = _count(evidence.forward_passes, "forward pass", "forward passes")
        lines = self.wrap(f"measured{program}: Warp {evidence.warp}, {evidence.device}, {passes}")
        lines += self.wrap(f"parameter {evidence.parameter}; objective {evidence.objective}")
        if evidence.checks:
            lines += ["", *self.table(evidence), ""]
        if evidence.counterfactual:
            lines += self.counterfactual(result, evidence.counterfactual)
        lines += self.wrap(f"signature: {evidence.signature}")
        if evidence.suspects and (result.rule == "WL901" or self.context.verbose):
            lines += self.wrap(f"tried in this order: {self.rules(evidence.suspects)}")
        if result.reason and says_more(result):
            lines += self.wrap(f"{self.because(result)}: {self.reason(result.reason)}")
        if evidence.covered:
            lines += self.wrap(f"covered: {'; '.join(evidence.covered)}")
        for line in evidence.tracker:
            lines += self.wrap(f"Warp's tracker: {line}")
        if evidence.ruled_out:
            lines += self.wrap(f"ruled out: {'; '.join(evidence.ruled_out)}")
        return lines

    def table(self, evidence: Evidence) -> list[str]:
        several = len({check.iteration for check in evidence.checks}) > 1
        shown = evidence.checks if self.context.verbose else evidence.checks[:_MOST_CHECKS]
        rows = [["direction", "autodiff", "finite difference", "noise", "relative error", ""]]
        for check in shown:
            at = f" (iteration {check.iteration})" if several else ""
            rows.append(
                [
                    plain(check.direction) + at,
                    short(check.ad),
                    short(check.fd),
                    rough(check.noise),
                    percent(check.relative_error),
                    check.outcome,
                ]
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = []
        for number, row in enumerate(rows):
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(size) for cell, size in zip(row[1:5], widths[1:5], strict=True)]
            text = f"{_INDENT * 2}{'  '.join([*cells, row[5]])}".rstrip()
            if number == 0:
                text = self.paint("dim", text)
            elif row[5] == "differs":
                text = self.paint("error", text)
            lines.append(text)
        hidden = len(evidence.checks) - len(shown)
        if hidden:
            lines.append(f"{_INDENT * 2}... and {hidden} more (--verbose shows all)")
        return lines

    def counterfactual(self, result: Result, removal: Removal) -> list[str]:
        # Before and after must speak of one run: with the cause put back, and without it.
        kept = removal.leave_one_out if len(removal.set) <= 1 else None
        before = f"{percent(kept)} -> " if kept is not None else ""
        lines = self.wrap(
            f"with the cause taken away: {before}{percent(removal.relative_error)} ({removal.removed})"
        )
        if len(removal.set) > 1:
            lines += self.wrap(f"causes that act together: {'; '.join(removal.set)}")
            if removal.alone is not None:
                lines += self.wrap(f"with only this one removed: {percent(removal.alone)}")
            if removal.leave_one_out is not None:
                lines += self.wrap(f"with only this one left in: {percent(removal.leave_one_out)}")
        return lines

    @staticmethod
    def without_what_is_said(report: Report) -> tuple[ProgramRow, ...]:
        """The rows without the reasons that a result of the same program gives already."""
        said: dict[str, str] = {}
        for result in report.results:
            program = result.program or result.location.file
            said[program] = f"{said.get(program, '')}\n{result.message}\n{result.reason or ''}"
        return tuple(
            replace(row, reason=None)
            if row.reason and row.reason in said.get(" ".join((row.program, *row.arguments)), "")
            else row
            for row in report.programs
        )

    def programs_are_news(self, rows: tuple[ProgramRow, ...]) -> bool:
        """Whether the rows say more than the results and the summary already do."""
        if len(rows) > 1 or (rows and (self.context.verbose or self.context.timings)):
            return True
        return any(row.reason or row.substitutions for row in rows)

    def programs(self, rows: tuple[ProgramRow, ...]) -> list[str]:
        shown = rows if self.context.verbose else rows[:_MOST_PROGRAMS]
        labels = [plain(" ".join((row.program, *row.arguments))) for row in shown]
        wide = min(max(map(len, labels)), 48)
        state = max(len(str(row.status)) for row in shown)
        lines = [self.paint("dim", "programs")]
        for label, row in zip(labels, shown, strict=True):
            facts = [fact for fact in (f"warp {row.warp}" if row.warp else None, row.device) if fact]
            if row.forward_passes:
                facts.append(_count(row.forward_passes, "forward pass", "forward passes"))
            if self.context.timings and row.seconds is not None:
                facts.append(f"{row.seconds:.1f} s")
            style = {ProgramStatus.VERIFIED: "good", ProgramStatus.WRONG: "error"}.get(row.status, "warning")
            status = self.paint(style, str(row.status).ljust(state))
            lines.append(f"{_INDENT}{label.ljust(wide)}  {status}  {', '.join(facts)}".rstrip())
            extra = [row.reason] if row.reason else []
            extra += [f"substituted: {item}" for item in row.substitutions]
            for item in extra:
                lines += self.wrap(item, _INDENT * 2)
        if len(rows) > len(shown):
            lines.append(f"{_INDENT}... and {len(rows) - len(shown)} more (--verbose shows all)")
        return lines

    def statistics(self, results: tuple[Result, ...]) -> list[str]:
        counts = Counter((result.rule, result.name, str(result.verdict)) for result in results)
        digits = max(len(str(count)) for count in counts.values())
        return [
            f"{count:>{digits}}  {rule} {name}  {verdict}"
            for (rule, name, verdict), count in sorted(counts.items())
        ]

    def summary(self, report: Report) -> str:
        counts = Counter(result.verdict for result in report.results)
        words = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
        if counts[Verdict.NOTE] > 1:
            words[words.index(f"{counts[Verdict.NOTE]} note")] += "s"
        if report.fixed:
            words.insert(0, f"{len(report.fixed)} fixed")
        files = _count(self.context.checked_files, "file", "files")
        text = f"{', '.join(words)} in {files}" if words else f"nothing found in {files}"
        if self.context.known:
            text += f" ({self.context.known} more in the baseline)"
        statuses = Counter(row.status for row in report.programs)
        if statuses:
            probed = _count(len(report.programs), "program", "programs")
            found = ", ".join(f"{statuses[status]} {status}" for status in ProgramStatus if statuses[status])
            text += f"; {probed}: {found}"
        elif not self.context.probed:
            text += "; nothing was run (--no-probe)"
        style = "error" if counts[Verdict.CONFIRMED] else "good" if not words else "rule"
        return self.paint(style, text)

    def wrap(self, text: str, indent: str = _INDENT) -> list[str]:
        return textwrap.wrap(
            plain(text),
            self.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
