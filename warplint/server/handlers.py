"""What the server does about each message of an editor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lsprotocol import types

from warplint.model import Result
from warplint.probe.scratch import is_broad
from warplint.rulebook import load_rules
from warplint.server import diagnostics
from warplint.server.actions import EVIDENCE, FIX, PROVE, VERIFY, actions
from warplint.server.app import WarplintServer
from warplint.server.documents import is_python, path_of
from warplint.server.folders import Checker
from warplint.server.texts import touches

_PAUSE = 0.25
"""Seconds without a keystroke before the text is read."""
_WATCHED = ("**/*.py", "**/*.ipynb", "**/pyproject.toml", "**/warplint.toml", "**/.gitignore")


def make_server() -> WarplintServer:
    """A server with everything that it can do."""
    server = WarplintServer()
    _session(server)
    _texts(server)
    _questions(server)
    _commands(server)
    return server


def _session(server: WarplintServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(ls: WarplintServer, params: types.InitializeParams) -> None:
        ls.initial = params.initialization_options
        given = params.capabilities
        asks = given.text_document is not None and given.text_document.diagnostic is not None
        refreshes = given.workspace.diagnostics if given.workspace is not None else None
        # An editor that cannot be told to ask again would never see a verdict.
        ls.pulls = bool(asks and refreshes is not None and refreshes.refresh_support)
        if ls.pulls:
            _pulled(ls)

    @server.feature(types.INITIALIZED)
    async def initialized(ls: WarplintServer, params: types.InitializedParams) -> None:
        folders = [folder.uri for folder in ls.workspace.folders.values()]
        if not folders and ls.workspace.root_uri:
            folders = [ls.workspace.root_uri]
        for uri in folders:
            _add(ls, uri)
        await _watch(ls)
        await ls.ask_for_settings()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders_changed(ls: WarplintServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
        for gone in params.event.removed:
            if path := path_of(gone.uri):
                ls.remove(path)
        for added in params.event.added:
            _add(ls, added.uri)
        await ls.ask_for_settings()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration(ls: WarplintServer, params: types.DidChangeConfigurationParams) -> None:
        if isinstance(params.settings, dict) and "warplint" in params.settings:
            for checker in ls.checkers.values():
                ls.configure(checker.folder, params.settings)
        await ls.ask_for_settings()

    @server.feature(types.SHUTDOWN)
    async def shutdown(ls: WarplintServer, params: None) -> None:
        for checker in ls.checkers.values():
            checker.stop()
        await ls.prover.stop()
        await ls.reader.stop()


def _texts(server: WarplintServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: WarplintServer, params: types.DidOpenTextDocumentParams) -> None:
        _opened(ls, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: WarplintServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.touch(path_of(params.text_document.uri), _PAUSE)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(ls: WarplintServer, params: types.DidSaveTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        ls.touch(path, 0.0)
        checker = ls.checker_of(path) if path else None
        if path is not None and checker is not None and checker.folder.settings.on_save:
            ls.in_background(ls.prover.after_save(checker, path))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: WarplintServer, params: types.DidCloseTextDocumentParams) -> None:
        _closed(ls, params.text_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def notebook_opened(ls: WarplintServer, params: types.DidOpenNotebookDocumentParams) -> None:
        _opened(ls, params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def notebook_changed(ls: WarplintServer, params: types.DidChangeNotebookDocumentParams) -> None:
        ls.touch(path_of(params.notebook_document.uri), _PAUSE)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def notebook_saved(ls: WarplintServer, params: types.DidSaveNotebookDocumentParams) -> None:
        ls.touch(path_of(params.notebook_document.uri), 0.0)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def notebook_closed(ls: WarplintServer, params: types.DidCloseNotebookDocumentParams) -> None:
        _closed(ls, params.notebook_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def files_changed(ls: WarplintServer, params: types.DidChangeWatchedFilesParams) -> None:
        for checker in ls.checkers.values():
            checker.touch(_PAUSE)


def _questions(server: WarplintServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: WarplintServer, params: types.HoverParams) -> types.Hover | None:
        here = types.Range(params.position, params.position)
        checker, results = await _at(ls, params.text_document.uri)
        for result in results:
            assert checker is not None
            place = ls.documents.place(checker.folder.root, result.location).range
            rule = load_rules().get(result.rule)
            if rule is not None and touches(place, here):
                value = diagnostics.page(rule, result)
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, value), place)
        return None

    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def code_action(
        ls: WarplintServer, params: types.CodeActionParams
    ) -> list[types.CodeAction] | None:
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
        if only and not {"", "quickfix"}.intersection(only):
            return None
        checker, results = await _at(ls, params.text_document.uri)
        if checker is None:
            return None
        provable = checker.folder.settings.run is not False
        return actions(results, checker.folder.root, params.range, ls.documents, provable=provable)


def _commands(server: WarplintServer) -> None:
    @server.command(PROVE)
    async def prove(ls: WarplintServer, target: Any = None) -> None:
        await ls.prover.command(target, "prove")

    @server.command(FIX)
    async def find_fix(ls: WarplintServer, target: Any = None) -> None:
        await ls.prover.command(target, "fix")

    @server.command(VERIFY)
    async def verify(ls: WarplintServer, target: Any = None) -> None:
        await ls.prover.command(target, "verify")

    @server.command(EVIDENCE)
    async def evidence(ls: WarplintServer, target: Any) -> None:
        uri = target.get("uri") if isinstance(target, dict) else target
        path = path_of(uri) if isinstance(uri, str) else None
        if path is None:
            ls.tell("name the file of the evidence", types.MessageType.Error)
            return
        window = ls.client_capabilities.window
        if window is not None and window.show_document and window.show_document.support:
            await ls.window_show_document_async(types.ShowDocumentParams(uri=str(uri), take_focus=True))
        else:
            ls.tell(f"the evidence is in {path}")


def _pulled(server: WarplintServer) -> None:
    options = types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=True, identifier="warplint"
    )

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def pull(
        ls: WarplintServer, params: types.DocumentDiagnosticParams
    ) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
        checker, _ = await _at(ls, params.text_document.uri)
        found = ls.diagnostics_of(checker.folder) if checker is not None else {}
        items = found.get(params.text_document.uri, [])
        name = diagnostics.result_id(items)
        if name == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=name)
        return types.RelatedFullDocumentDiagnosticReport(items=items, result_id=name)

    @server.feature(types.WORKSPACE_DIAGNOSTIC)
    async def pull_all(
        ls: WarplintServer, params: types.WorkspaceDiagnosticParams
    ) -> types.WorkspaceDiagnosticReport:
        everything: dict[str, list[types.Diagnostic]] = {}
        for checker in list(ls.checkers.values()):
            await checker.current()
            everything.update(ls.diagnostics_of(checker.folder))
        known = {item.uri: item.value for item in params.previous_result_ids}
        reports: list[Any] = []
        for uri in sorted({*everything, *known}):
            items, version = everything.get(uri, []), ls.documents.version(uri)
            name = diagnostics.result_id(items)
            if known.get(uri) == name:
                same = types.WorkspaceUnchangedDocumentDiagnosticReport(uri, name, version=version)
                reports.append(same)
            else:
                full = types.WorkspaceFullDocumentDiagnosticReport(
                    uri, items, version=version, result_id=name
                )
                reports.append(full)
        return types.WorkspaceDiagnosticReport(reports)


# --- helpers ----------------------------------------------------------------------------------


async def _at(ls: WarplintServer, uri: str) -> tuple[Checker | None, Iterable[Result]]:
    """The checker of a document and the results in it, true of the text as it is now."""
    path, cell = ls.documents.find(uri)
    checker = ls.checker_of(path) if path else None
    if path is None or checker is None:
        return None, ()
    await checker.current()
    file = checker.folder.display(path)
    results = [r for r in checker.folder.results() if r.location.file == file]
    return checker, [r for r in results if not cell or r.location.cell == cell]


async def _watch(ls: WarplintServer) -> None:
    """Ask to be told of changes that other programs make."""
    workspace = ls.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace else None
    if watching is None or not watching.dynamic_registration:
        return
    watchers = [types.FileSystemWatcher(glob) for glob in _WATCHED]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    name = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    registration = types.Registration("warplint-files", name, options)
    await ls.client_register_capability_async(types.RegistrationParams([registration]))


def _add(ls: WarplintServer, uri: str) -> None:
    path = path_of(uri)
    if path is None or not path.is_dir():
        return
    if is_broad(path):
        ls.tell(f"{path} is no project: only the files that are opened in it are checked")
        return
    ls.add_folder(path)


def _opened(ls: WarplintServer, uri: str) -> None:
    path = path_of(uri)
    checker = ls.opened(path) if path is not None and is_python(path) else None
    if checker is not None:
        checker.touch()


def _closed(ls: WarplintServer, uri: str) -> None:
    path = path_of(uri)
    checker = ls.checker_of(path) if path else None
    if path is not None and checker is not None and checker.folder.alone:
        ls.remove(path)
    elif path is not None:
        ls.touch(path, 0.0)
