"""Programs are run when the user wants it, in the background, and verdicts live as long as the text."""

from __future__ import annotations

import pytest
from lsprotocol import types

from warplint.rulebook import load_rules

pytestmark = [pytest.mark.asyncio, pytest.mark.probe]

BAD = load_rules()["WL106"].bad.replace("0.1 * w.grad", "RATE * w.grad")
BAD = BAD.replace("import warp as wp\n", "import warp as wp\nfrom rates import RATE\n", 1)
LATE, BACKWARD = "    batch.assign(samples[k + 1])\n", "    tape.backward(loss)\n"


async def test_a_finding_is_proved_when_the_user_says_so(editor, project, tmp_path_factory, monkeypatch):
    scratch = tmp_path_factory.mktemp("scratch")
    monkeypatch.setenv("TMPDIR", str(scratch))
    train = project / "train.py"
    train.write_text(BAD)
    rates = project / "rates.py"
    rates.write_text("RATE = 0.1\n")
    await editor.start(project, settings={"probe": {"timeout": 240}})
    editor.open(train)
    [found] = await editor.sees(train, "WL106")
    prove = (await editor.actions(train, found.range))["Prove WL106 (runs the program)"]

    # Nobody has allowed it: the user is asked, and nothing runs without a yes.
    await editor.run(prove.command)
    await editor.until(lambda: editor.questions)
    assert str(project) in editor.questions[0].message
    editor.answer = editor.questions[0].actions[0].title
    await editor.run(prove.command)

    await editor.until(lambda: editor.rules(train) == ["WL106"] and editor.shown(train)[0].severity == 1)
    [proved] = editor.shown(train)
    assert proved.range == found.range
    assert "[confirmed]" in proved.message and "with the cause taken away" in proved.message
    begin, *reports, end = editor.progress
    assert begin.cancellable and begin.title == "warplint: running 1 program"
    assert "train.py: measuring" in [report.message for report in reports]
    assert end.message == "1 wrong"
    assert len(editor.questions) == 2

    evidence = (await editor.actions(train, found.range))["Open the evidence of WL106"]
    await editor.run(evidence.command)
    await editor.until(lambda: editor.client.shown_documents or editor.client.messages)
    assert list((project / ".warplint" / "evidence").glob("WL106-*.py"))

    # Another text of any file of the program: the verdict is not true of it.
    editor.open(rates)
    editor.type(rates, "0.1", "0.2")
    await editor.until(lambda: editor.shown(train) and editor.shown(train)[0].severity == 2)
    assert "[unverified]" in editor.shown(train)[0].message
    # A run can be cancelled, and what it made is gone.
    await editor.prove(train)
    await editor.until(
        lambda: any(getattr(p, "message", "") == "train.py: looking" for p in editor.progress[-1:])
    )
    token = list(editor.client.progress_reports)[-1]
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    await editor.until(lambda: editor.progress[-1].kind == "end")
    assert editor.progress[-1].message == "cancelled"
    # What is saved is proved at once, where the settings say so (and is known from before).
    editor.type(rates, "0.2", "0.1")
    editor.client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams({"warplint": {"probe": {"enabled": True, "on-save": True}}})
    )
    editor.save(train)
    await editor.until(lambda: editor.shown(train) and editor.shown(train)[0].severity == 1)
    hover = await editor.client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(train.as_uri()), editor.shown(train)[0].range.start)
    )
    assert "| direction | autodiff | finite difference |" in hover.contents.value
    # A fix that was not measured is offered at once; one that is right when measured takes its place.
    actions = await editor.actions(train, found.range)
    assert "Fix WL106: do it after the backward pass (not measured)" in actions
    looking = next(title for title in actions if title.startswith("Look for a fix"))
    await editor.run(actions[looking].command)
    await editor.until(lambda: editor.progress[-1].message == "1 fix is right when measured")
    actions = await editor.actions(train, found.range)
    [title] = [
        title for title in actions if title.startswith("Fix WL106: do it after the backward pass (measured")
    ]
    assert next(iter(actions)) == title and actions[title].is_preferred
    editor.apply(actions[title])
    await editor.sees(train)
    assert BACKWARD + LATE in editor._texts[train]
    # What is measured is what stands in the editor, not what lies on the disk.
    await editor.run(types.Command("", "warplint.verifyProgram", arguments=[train.as_uri()]))
    [right] = await editor.sees(train, "WL902")
    assert right.severity is types.DiagnosticSeverity.Information
    assert train.read_text() == BAD
    assert not [path for path in scratch.iterdir() if path.name.startswith("warplint-")]
