"""An editor for the tests: it starts the server, holds texts, and sees what an editor would see."""

from __future__ import annotations

import ast
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import LanguageClient
from pytest_lsp.client import client_capabilities, make_test_lsp_client

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PATIENCE = 180.0


class Editor:
    """One session with a server."""

    def __init__(self) -> None:
        self.client: LanguageClient = make_test_lsp_client()
        self.questions: list[types.ShowMessageRequestParams] = []
        self.answer: str | None = None
        """The title of the button to press when a question is asked."""
        self._versions: dict[Path, int] = {}
        self._texts: dict[Path, str] = {}

        @self.client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
        def asked(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
            self.questions.append(params)
            return next((item for item in params.actions or () if item.title == self.answer), None)

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def registered(params: types.RegistrationParams) -> None:
            return None

    async def start(
        self,
        *folders: Path,
        encodings: list[str] | None = None,
        settings: Any = None,
        directory: Path | None = None,
        configuration: Any = None,
        pulls: bool = False,
    ) -> types.InitializeResult:
        path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
        start = "import sys; sys.path.pop(0); from warplint.cli.main import run; run(['server'])"
        await self.client.start_io(
            *(sys.executable, "-c", start), env={**os.environ, "PYTHONPATH": path}, cwd=directory
        )
        capabilities = client_capabilities("neovim@v0.7")
        if encodings:
            capabilities.general = types.GeneralClientCapabilities(position_encodings=encodings)
        if pulls:
            capabilities.text_document.diagnostic = types.DiagnosticClientCapabilities()
            capabilities.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(True)
        if configuration is not None:
            self.client.set_configuration(configuration, section="warplint")
            capabilities.workspace.configuration = True
        return await self.client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities,
                root_uri=folders[0].as_uri() if folders else None,
                workspace_folders=[types.WorkspaceFolder(f.as_uri(), f.name) for f in folders],
                initialization_options=settings,
            )
        )

    def open(self, file: Path, text: str | None = None) -> None:
        self._texts[file] = file.read_text() if text is None else text
        self._versions[file] = 1
        item = types.TextDocumentItem(file.as_uri(), "python", 1, self._texts[file])
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, file: Path, old: str, new: str) -> None:
        """Replace a piece of an open text."""
        assert old in self._texts[file]
        self.replace(file, self._texts[file].replace(old, new, 1))

    def replace(self, file: Path, text: str) -> None:
        self._texts[file] = text
        self._versions[file] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[file], file.as_uri())
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def save(self, file: Path) -> None:
        file.write_text(self._texts[file])
        document = types.TextDocumentIdentifier(file.as_uri())
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(document))

    def apply(self, action: types.CodeAction) -> None:
        """Do what an action's edit says (positions counted in UTF-16 on ASCII lines)."""
        for uri, edits in action.edit.changes.items():
            file = next(file for file in self._texts if file.as_uri() == uri)
            lines = self._texts[file].split("\n")
            for edit in sorted(
                edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True
            ):
                first, last = edit.range.start, edit.range.end
                head, tail = lines[first.line][: first.character], lines[last.line][last.character :]
                lines[first.line : last.line + 1] = (head + edit.new_text + tail).split("\n")
            self.replace(file, "\n".join(lines))

    def shown(self, file: Path) -> list[types.Diagnostic]:
        return list(self.client.diagnostics.get(file.as_uri(), ()))

    def rules(self, file: Path) -> list[str]:
        return [str(item.code) for item in self.shown(file)]

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait for something to be seen."""
        waited = 0.0
        while not holds():
            assert waited < PATIENCE, "it was never seen"
            await asyncio.sleep(0.02)
            waited += 0.02

    async def sees(self, file: Path, *rules: str) -> list[types.Diagnostic]:
        """Wait until exactly these rules are shown in a file."""
        await self.until(lambda: file.as_uri() in self.client.diagnostics and self.rules(file) == list(rules))
        return self.shown(file)

    async def actions(self, file: Path, place: types.Range) -> dict[str, types.CodeAction]:
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(file.as_uri()), place, types.CodeActionContext(self.shown(file))
            )
        )
        return {action.title: _whole(action) for action in found or ()}

    async def run(self, command: types.Command) -> None:
        await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams(command.command, list(command.arguments or ()))
        )

    async def prove(self, file: Path) -> None:
        await self.run(types.Command("", "warplint.prove", arguments=[{"uri": file.as_uri()}]))

    @property
    def progress(self) -> list[Any]:
        """Everything that progress bars have shown, in order."""
        return [value for values in self.client.progress_reports.values() for value in values]


def _whole(action: types.CodeAction | types.Command) -> types.CodeAction:
    """The client takes an action with a command for a bare command; its inside is still there."""
    if isinstance(action, types.CodeAction):
        return action
    inner = ast.literal_eval(action.command)
    return types.CodeAction(
        action.title, command=types.Command(inner["title"], inner["command"], arguments=inner["arguments"])
    )


@pytest_asyncio.fixture
async def editor():
    made = Editor()
    yield made
    await made.client.shutdown_session()
    await made.client.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path
