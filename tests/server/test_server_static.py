"""What an editor shows while text is written: nothing is executed for it."""

from __future__ import annotations

import sys

import pytest
from lsprotocol import types

from warplint.rulebook import load_rules

pytestmark = pytest.mark.asyncio

# A buffer is refilled before the backward pass that needs it.
BAD = load_rules()["WL106"].bad
LINE = "    batch.assign(samples[k + 1])"
FIXED = BAD.replace(f"{LINE}\n    tape.backward(loss)\n", f"    tape.backward(loss)\n{LINE}\n")


async def test_a_finding_is_shown_with_its_places_and_goes_away_when_the_text_is_right(editor, project):
    train = project / "train.py"
    train.write_text(BAD)
    await editor.start(project)
    editor.open(train)
    [shown] = await editor.sees(train, "WL106")
    line = BAD.splitlines().index(LINE)
    assert shown.range == types.Range(types.Position(line, 4), types.Position(line, len(LINE)))
    assert shown.severity is types.DiagnosticSeverity.Warning
    assert shown.source == "warplint" and shown.message.splitlines()[0].endswith("[unverified]")
    assert shown.code_description.href == load_rules()["WL106"].docs
    assert [site.message for site in shown.related_information][-1] == "the backward pass runs here"

    hover = await editor.client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(train.as_uri()), types.Position(line, 10))
    )
    assert "# WL106 write-before-backward" in hover.contents.value
    assert "## Why it is wrong" in hover.contents.value

    editor.replace(train, FIXED)  # not saved: the file on the disk is still wrong
    await editor.sees(train)
    editor.replace(train, BAD)
    await editor.sees(train, "WL106")
    editor.replace(train, BAD.replace("    tape.backward(loss)\n", "    tape.backward(loss\n"))
    [broken] = await editor.sees(train, "WL002")
    assert broken.severity is types.DiagnosticSeverity.Error
    # Closed without saving, it is what lies on the disk.
    editor.client.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(train.as_uri()))
    )
    await editor.sees(train, "WL106")


# What stands before the finding on its line, four blanks and `"𝛼∂"; `, in each encoding's units.
@pytest.mark.parametrize(("encoding", "start"), [("utf-8", 15), ("utf-16", 11), ("utf-32", 10)])
async def test_columns_are_counted_as_the_editor_counts(editor, project, encoding, start):
    train = project / "train.py"
    train.write_text(BAD.replace(LINE, '    "𝛼∂"; ' + LINE.strip()), encoding="utf-8")
    answer = await editor.start(project, encodings=[encoding])
    assert answer.capabilities.position_encoding == encoding
    editor.open(train, train.read_text(encoding="utf-8"))
    [shown] = await editor.sees(train, "WL106")
    assert shown.range.start.character == start
    assert shown.range.end.character == start + len(LINE.strip())


async def test_an_unsaved_module_counts_for_the_program_that_imports_it(editor, project):
    simulation, train = project / "simulation.py", project / "train.py"
    head, loop = BAD.split("rng = ")
    simulation.write_text(head)
    train.write_text(f"import numpy as np\nimport warp as wp\nfrom simulation import *\n\nrng = {loop}")
    await editor.start(project)
    editor.open(train)
    editor.open(simulation)
    await editor.sees(train, "WL106")
    # Linear in what is overwritten: the backward pass does not need it.
    editor.type(
        simulation, "    time, seen = batch[i][0], batch[i][1]\n", "    time, seen = 0.5, batch[i][1]\n"
    )
    editor.type(simulation, "    d = w[0] * wp.sin(w[1] * time) - seen\n", "    d = w[0] * time\n")
    editor.type(simulation, "d * d / float(BATCH)", "d + 0.0 * seen")
    await editor.sees(train)
    # A module that was never saved.
    editor.type(train, "from simulation", "from other")
    editor.open(project / "other.py", head)
    await editor.sees(train, "WL106")


async def test_ignore_comments_are_written_merged_and_obeyed(editor, project):
    train = project / "train.py"
    train.write_text(BAD.replace(LINE, f"{LINE}  # warplint: ignore[WL101]"))
    await editor.start(project)
    editor.open(train)
    shown = await editor.sees(train, "WL106", "WL001")
    actions = await editor.actions(train, shown[0].range)
    editor.apply(actions["Ignore WL106 here"])
    await editor.sees(train)
    assert f"{LINE}  # warplint: ignore[WL101, WL106]\n" in editor._texts[train]

    editor.replace(train, f"#!/usr/bin/env python3\n{BAD}")
    [shown] = await editor.sees(train, "WL106")
    actions = await editor.actions(train, shown.range)
    editor.apply(actions["Ignore WL106 in this file"])
    await editor.sees(train)
    assert editor._texts[train].startswith("#!/usr/bin/env python3\n# warplint: ignore-file[WL106]\n")


async def test_each_folder_has_its_own_configuration_and_the_editor_wins(editor, tmp_path):
    folders = [tmp_path / name for name in ("strict", "lenient")]
    for folder in folders:
        folder.mkdir()
        (folder / ".git").mkdir()
        (folder / "train.py").write_text(BAD)
    (folders[1] / "pyproject.toml").write_text('[tool.warplint]\nignore = ["WL1"]\n')
    await editor.start(*folders, configuration={})
    for folder in folders:
        editor.open(folder / "train.py")
    await editor.sees(folders[0] / "train.py", "WL106")
    await editor.sees(folders[1] / "train.py")
    editor.client.set_configuration({"ignore": []}, section="warplint")
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    await editor.sees(folders[1] / "train.py", "WL106")
    editor.client.set_configuration({"ignor": []}, section="warplint")
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    await editor.until(lambda: editor.client.messages)
    assert "unknown key 'ignor'; did you mean 'ignore'?" in editor.client.messages[-1].message
    # A folder that is closed is not shown any more.
    gone = types.WorkspaceFolder(folders[0].as_uri(), "strict")
    event = types.WorkspaceFoldersChangeEvent(added=[], removed=[gone])
    editor.client.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier((folders[0] / "train.py").as_uri()))
    )
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    await editor.sees(folders[0] / "train.py")


async def test_an_editor_that_pulls_is_answered_and_told_to_pull_again(editor, project):
    train, library = project / "train.py", project / "library.py"
    train.write_text(BAD)
    library.write_text("import warp as wp\n\nwp.Tape(\n")
    answer = await editor.start(project, pulls=True)
    assert answer.capabilities.diagnostic_provider.workspace_diagnostics
    editor.open(train)
    document = types.TextDocumentIdentifier(train.as_uri())

    async def pull(known: str | None = None):
        return await editor.client.text_document_diagnostic_async(
            types.DocumentDiagnosticParams(document, previous_result_id=known)
        )

    first = await pull()
    assert [item.code for item in first.items] == ["WL106"]
    assert (await pull(first.result_id)).kind == "unchanged"
    editor.replace(train, FIXED)
    assert (await pull(first.result_id)).items == ()  # of the text as it is, not as it was
    await editor.until(lambda: editor.client.diagnostic_refresh_count)
    everything = await editor.client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams([]))
    assert [(item.uri, [d.code for d in item.items]) for item in everything.items] == [
        (library.as_uri(), ["WL002"])
    ]
    known = [types.PreviousResultId(library.as_uri(), everything.items[0].result_id)]
    again = await editor.client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams(known))
    assert [item.kind for item in again.items] == ["unchanged"]
    assert not editor.client.diagnostics  # nothing is shown twice


async def test_nothing_of_the_workspace_is_executed(editor, project):
    mark = f"open({str(project / 'executed')!r}, 'w')\n"
    train = project / "train.py"
    train.write_text(mark + BAD)
    for name in ("json.py", "warp.py", "sitecustomize.py", "conftest.py", "libcst.py"):
        (project / name).write_text(mark)
    (project / "warplint").mkdir()
    (project / "warplint" / "__init__.py").write_text(mark)
    await editor.start(project, directory=project, settings={"probe": False})
    editor.open(train)
    [shown] = await editor.sees(train, "WL106")
    actions = await editor.actions(train, shown.range)
    assert not [title for title in actions if "Prove" in title]
    await editor.prove(train)
    await editor.until(lambda: editor.client.messages)
    assert "turned off" in editor.client.messages[-1].message
    assert not (project / "executed").exists()


async def test_a_file_outside_all_folders_is_checked_alone(editor, project):
    train = project / "train.py"
    train.write_text(BAD)
    (project / "other.py").write_text(BAD)
    await editor.start()
    editor.open(train)
    await editor.sees(train, "WL106")
    assert list(editor.client.diagnostics) == [train.as_uri()]


async def test_without_its_libraries_the_server_says_what_to_install(capfd, monkeypatch):
    from warplint.cli.main import main

    for name in ("pygls", "lsprotocol"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["server"]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1 and "pip install 'warplint[lsp]'" in error


async def test_cells_of_a_notebook_are_shown_where_they_are(editor, project):
    file = project / "fit.ipynb"
    head, loop = BAD.split("rng = ")
    texts = ["# Fit a wave", f"%matplotlib inline\n{head}", f"rng = {loop}"]
    uris = [f"vscode-notebook-cell://{file}#cell{number}" for number in range(3)]
    kinds = [types.NotebookCellKind.Markup, types.NotebookCellKind.Code, types.NotebookCellKind.Code]
    await editor.start(project)
    editor.client.notebook_document_did_open(
        types.DidOpenNotebookDocumentParams(
            types.NotebookDocument(
                file.as_uri(),
                "jupyter-notebook",
                1,
                [types.NotebookCell(kind, uri) for kind, uri in zip(kinds, uris, strict=True)],
            ),
            [
                types.TextDocumentItem(uri, "markdown" if kind is kinds[0] else "python", 1, text)
                for kind, uri, text in zip(kinds, uris, texts, strict=True)
            ],
        )
    )
    await editor.until(lambda: editor.client.diagnostics.get(uris[2]))
    [shown] = editor.client.diagnostics[uris[2]]
    line = texts[2].split("\n").index(LINE)
    assert shown.range == types.Range(types.Position(line, 4), types.Position(line, len(LINE)))
    assert f"(cell 3, line {line})" in shown.message
    assert not editor.client.diagnostics.get(uris[1])

    document = types.TextDocumentIdentifier(uris[2])
    found = await editor.client.text_document_code_action_async(
        types.CodeActionParams(document, shown.range, types.CodeActionContext([]))
    )
    [edits] = [action.edit.changes[uris[2]] for action in found or () if action.title == "Ignore WL106 here"]
    assert edits[0].range.start.line == line
    # A cell is typed into; its notebook was never saved.
    change = types.NotebookDocumentCellChanges(
        text_content=[
            types.NotebookDocumentCellContentChanges(
                types.VersionedTextDocumentIdentifier(2, uris[2]),
                [types.TextDocumentContentChangeWholeDocument("rng = " + FIXED.split("rng = ")[1])],
            )
        ]
    )
    editor.client.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, file.as_uri()),
            types.NotebookDocumentChangeEvent(cells=change),
        )
    )
    await editor.until(lambda: not editor.client.diagnostics[uris[2]])
