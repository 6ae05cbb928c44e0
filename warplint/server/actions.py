"""Code actions: apply a fix, hide a result, prove it, look at the evidence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types

from warplint.model import Edit, Result, Verdict
from warplint.report.numbers import percent
from warplint.server.diagnostics import diagnostic
from warplint.server.documents import Documents, uri_of
from warplint.server.suppress import suppress_here, suppress_in_file
from warplint.server.texts import touches

PROVE = "warplint.prove"
FIX = "warplint.findFix"
VERIFY = "warplint.verifyProgram"
EVIDENCE = "warplint.openEvidence"


def actions(
    results: Iterable[Result], root: Path, wanted: types.Range, documents: Documents, *, provable: bool
) -> list[types.CodeAction]:
    """What can be done about the results that ``wanted`` touches."""
    found: list[types.CodeAction] = []
    for result in results:
        if touches(documents.place(root, result.location).range, wanted):
            found += _of_result(result, root, documents, provable=provable)
    return sorted(found, key=lambda action: not action.is_preferred)


def _of_result(
    result: Result, root: Path, documents: Documents, *, provable: bool
) -> Iterable[types.CodeAction]:
    shown = diagnostic(result, root, documents)

    def made(title: str, **more: object) -> types.CodeAction:
        kind = types.CodeActionKind.QuickFix
        return types.CodeAction(title=title, kind=kind, diagnostics=[shown], **more)  # type: ignore[arg-type]

    measured = result.fix is not None and result.fix.applicability == "verified"
    if result.fix and result.fix.edits:
        known = f"measured: {percent(result.fix.after)}" if result.fix.after is not None else "not measured"
        title = f"Fix {result.rule}: {result.fix.title or result.name} ({known})"
        edit = _workspace_edit(result.fix.edits, root, documents)
        yield made(title, edit=edit, is_preferred=measured)
    if result.rule in ("WL001", "WL002"):
        return
    place = documents.place(root, result.location)
    target = {
        "uri": uri_of(root / result.location.file),
        "line": shown.range.start.line,
        "rule": result.rule,
    }
    confirmed = result.verdict is Verdict.CONFIRMED
    if not result.rule.startswith("WL9") and not confirmed and provable and not result.location.cell:
        title = f"Prove {result.rule} (runs the program)"
        yield made(title, command=types.Command(title, PROVE, arguments=[target]))
    if confirmed and not measured and provable:
        title = f"Look for a fix of {result.rule} that is right when measured (runs the program)"
        yield made(title, command=types.Command(title, FIX, arguments=[target]))
    if result.evidence and result.evidence.harness:
        title = f"Open the evidence of {result.rule}"
        where = uri_of(root / result.evidence.harness)
        yield made(title, command=types.Command(title, EVIDENCE, arguments=[{"uri": where}]))
    here = suppress_here(place.text.lines, place.location, result.rule)
    yield made(f"Ignore {result.rule} here", edit=_workspace_edit((here,), root, documents))
    everywhere = suppress_in_file(place.text.lines, place.location, result.rule)
    yield made(f"Ignore {result.rule} in this file", edit=_workspace_edit((everywhere,), root, documents))


def _workspace_edit(edits: Iterable[Edit], root: Path, documents: Documents) -> types.WorkspaceEdit:
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        place = documents.place(root, edit.location)
        region = place.location
        start = place.text.position(region.line, region.column)
        end = place.text.position(region.end_line, region.end_column or region.column)
        text = edit.text
        if "\r\n" in place.text.text:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        changes.setdefault(place.uri, []).append(types.TextEdit(types.Range(start, end), text))
    return types.WorkspaceEdit(changes=changes)
