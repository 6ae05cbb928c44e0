"""Results as an editor shows them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from lsprotocol import types

from warplint.model import Evidence, Result, Rule, Verdict, to_plain
from warplint.report.context import fails_as_error, headline, says_more
from warplint.report.numbers import percent, short
from warplint.server.documents import Documents

_MOST_CHECKS = 6
_SEVERITY = {
    Verdict.CONFIRMED: types.DiagnosticSeverity.Error,
    Verdict.LATENT: types.DiagnosticSeverity.Warning,
    Verdict.UNVERIFIED: types.DiagnosticSeverity.Warning,
    Verdict.NOTE: types.DiagnosticSeverity.Information,
    Verdict.DISMISSED: types.DiagnosticSeverity.Hint,
}


def diagnostic(result: Result, root: Path, documents: Documents, *, related: bool = True) -> types.Diagnostic:
    """One result as the editor shows it; ``data`` is for clients that want to say more."""
    made = types.Diagnostic(
        range=documents.place(root, result.location).range,
        message=message(result),
        severity=types.DiagnosticSeverity.Error if fails_as_error(result) else _SEVERITY[result.verdict],
        code=result.rule,
        source="warplint",
        data={"name": result.name, "verdict": str(result.verdict), "program": result.program},
    )
    if result.docs:
        made.code_description = types.CodeDescription(result.docs)
    if related and result.related:
        places = [(documents.place(root, site.location), site.message) for site in result.related]
        made.related_information = [
            types.DiagnosticRelatedInformation(types.Location(place.uri, place.range), text)
            for place, text in places
        ]
    return made


def message(result: Result) -> str:
    """The sentence of the report, what was measured, and what to do."""
    lines = [f"{result.message} [{result.verdict}]"]
    check = headline(result)
    if check is not None and result.evidence is not None:
        numbers = f"measured on {result.evidence.parameter}: off by {percent(check.relative_error)}"
        if removal := result.evidence.counterfactual:
            numbers += f", {percent(removal.relative_error)} with the cause taken away"
        lines.append(numbers)
    if result.reason and says_more(result) and result.reason != "probing-disabled":
        lines.append(f"why: {result.reason}")
    if result.help:
        lines.append(f"help: {result.help}")
    return "\n".join(lines)


def page(rule: Rule, result: Result | None = None) -> str:
    """A rule's page as Markdown, below what was found here."""
    parts = []
    if result is not None:
        parts += [f"**{result.rule} {result.name}**: {result.verdict}", message(result).replace("\n", "  \n")]
        if result.evidence is not None:
            parts += _measured(result.evidence)
        parts.append("---")
    parts.append(f"# {rule.id} {rule.name}\n\n{rule.summary}\n\n{rule.text.strip()}")
    if rule.docs:
        parts.append(f"[Warp's documentation]({rule.docs})")
    return "\n\n".join(parts)


def _measured(evidence: Evidence) -> list[str]:
    """What was measured, as a table."""
    rows = [
        f"| {check.direction} | {short(check.ad)} | {short(check.fd)} | {percent(check.relative_error)} |"
        for check in evidence.checks[:_MOST_CHECKS]
    ]
    head = ["| direction | autodiff | finite difference | off by |", "|---|---|---|---|"]
    said = f"Warp {evidence.warp}, {evidence.device}; {evidence.parameter}; {evidence.objective}"
    parts = [said, *(["\n".join([*head, *rows])] if rows else [])]
    return [*parts, f"evidence: `{evidence.harness}`"] if evidence.harness else parts


def result_id(items: list[types.Diagnostic]) -> str:
    """The same for the same diagnostics."""
    plain = json.dumps([_plain(item) for item in items], sort_keys=True)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _plain(item: types.Diagnostic) -> object:
    place = item.range
    related = [
        (site.location.uri, str(site.location.range), site.message) for site in item.related_information or ()
    ]
    return [str(place), item.message, item.severity, item.code, related, to_plain(item.data)]
