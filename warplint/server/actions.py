"""Code actions: apply a fix, hide a result, prove it, look at the evidence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types

from warplint.model import Edit, Result, Verdict
from warplint.server.diagnostics import TextOf, diagnostic, uri_of
from warplint.server.suppress import suppress_here, suppress_in_file
from warplint.server.texts import touches

PROVE = "warplint.prove"
VERIFY = "warplint.verifyProgram"
EVIDENCE = "warplint.openEvidence"


def actions(
    results: Iterable[Result], root: Path, path: Path, wanted: types.Range, text_of: TextOf, *, provable: bool
) -> list[types.CodeAction]:
    """What can be done about the results that ``wanted`` touches."""
    text = text_of(path)
    found: list[types.CodeAction] = []
    for result in results:
        if touches(text.range(result.location), wanted):
            shown = diagnostic(result, root, text_of)
            found += _of_result(result, shown, root, path, text_of, provable=provable)
    return sorted(found, key=lambda action: not action.is_preferred)


def _of_result(
    result: Result, shown: types.Diagnostic, root: Path, path: Path, text_of: TextOf, *, provable: bool
) -> Iterable[types.CodeAction]:
    def made(title: str, **more: object) -> types.CodeAction:
        kind = types.CodeActionKind.QuickFix
        return types.CodeAction(title=title, kind=kind, diagnostics=[shown], **more)  # type: ignore[arg-type]

    if result.fix and result.fix.edits:
        title = f"Fix {result.rule} {result.name} ({result.fix.applicability})"
        yield made(title, edit=_workspace_edit(result.fix.edits, root, text_of), is_preferred=True)
    lines = text_of(path).lines
    file = result.location.file
    if result.rule not in ("WL001", "WL002"):
        if not result.rule.startswith("WL9") and result.verdict is not Verdict.CONFIRMED and provable:
            arguments = [{"uri": uri_of(path), "line": shown.range.start.line, "rule": result.rule}]
            title = f"Prove {result.rule} (runs the program)"
            yield made(title, command=types.Command(title, PROVE, arguments=arguments))
        if result.evidence and result.evidence.harness:
            title = f"Open the evidence of {result.rule}"
            where = uri_of(root / result.evidence.harness)
            yield made(title, command=types.Command(title, EVIDENCE, arguments=[{"uri": where}]))
        here = suppress_here(lines, file, result.location.line, result.rule)
        yield made(f"Ignore {result.rule} here", edit=_workspace_edit((here,), root, text_of))
        everywhere = suppress_in_file(lines, file, result.rule)
        yield made(f"Ignore {result.rule} in this file", edit=_workspace_edit((everywhere,), root, text_of))


def _workspace_edit(edits: Iterable[Edit], root: Path, text_of: TextOf) -> types.WorkspaceEdit:
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        path = root / edit.location.file
        place = text_of(path)
        start = place.position(edit.location.line, edit.location.column)
        end = place.position(edit.location.end_line, edit.location.end_column or edit.location.column)
        changes.setdefault(uri_of(path), []).append(types.TextEdit(types.Range(start, end), edit.text))
    return types.WorkspaceEdit(changes=changes)
