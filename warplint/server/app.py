"""The server itself: what the editor tells it, and what it tells the editor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from warplint import __version__
from warplint.config import ConfigError
from warplint.model import Result
from warplint.probe.scratch import is_broad
from warplint.rulebook import load_rules
from warplint.server import diagnostics
from warplint.server.actions import EVIDENCE, PROVE, VERIFY, actions
from warplint.server.folders import Checker, Folder
from warplint.server.proving import Prover
from warplint.server.requests import Worker
from warplint.server.settings import merged, read
from warplint.server.texts import Text, touches
from warplint.source.discovery import DEFAULT_EXCLUDES

_PAUSE = 0.25
"""Seconds without a keystroke before the text is read."""
_WATCHED = ("**/*.py", "**/*.ipynb", "**/pyproject.toml", "**/warplint.toml", "**/.gitignore")
_MARKERS = ("pyproject.toml", "warplint.toml", "setup.py", ".git")


class WarplintServer(LanguageServer):
    """The folders of one editor, and what is going on in them."""

    def __init__(self) -> None:
        # With whole texts, lines are cut where the protocol cuts them and nowhere else.
        super().__init__("warplint", __version__, types.TextDocumentSyncKind.Full)
        self.reader = Worker()
        self.checkers: dict[Path, Checker] = {}
        self.prover = Prover(self)
        self.initial: Any = None
        self.pulls = False
        """The editor asks for diagnostics; else it is told."""
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- folders ------------------------------------------------------------------------------

    def add_folder(self, root: Path, paths: tuple[str, ...] = (".",)) -> Checker:
        folder = Folder(root, paths)
        checker = Checker(folder, self.reader, lambda: self.buffers(folder), self.publish)
        self.checkers[root if paths == (".",) else root / paths[0]] = checker
        self.configure(folder, None)
        return checker

    def remove(self, key: Path) -> None:
        checker = self.checkers.pop(key, None)
        if checker is not None:
            checker.stop()
            checker.folder.findings, checker.folder.proofs = (), []
            self.in_background(self.publish(checker.folder))

    def configure(self, folder: Folder, value: Any) -> None:
        """Take over the settings of a folder; of two layers the editor's answer wins."""
        try:
            settings = read(merged(_own(self.initial), _own(value)))
        except ConfigError as error:
            self.tell(str(error), types.MessageType.Error)
            return
        if settings != folder.settings:
            folder.settings = settings
            folder.proofs.clear()

    async def ask_for_settings(self) -> None:
        """Ask the editor for the settings of every folder, and check again."""
        capabilities = self.client_capabilities.workspace
        if capabilities is not None and capabilities.configuration and self.checkers:
            checkers = list(self.checkers.values())
            items = [
                types.ConfigurationItem(scope_uri=diagnostics.uri_of(c.folder.root), section="warplint")
                for c in checkers
            ]
            values = await self.workspace_configuration_async(types.ConfigurationParams(items))
            for checker, value in zip(checkers, values or [], strict=False):
                self.configure(checker.folder, value)
        for checker in self.checkers.values():
            checker.touch()

    def checker_of(self, path: Path) -> Checker | None:
        """The checker that answers for a file: the one of the innermost folder around it."""
        found = [key for key in self.checkers if path == key or path.is_relative_to(key)]
        return self.checkers[max(found, key=lambda key: len(key.parts))] if found else None

    def opened(self, path: Path) -> Checker | None:
        """The checker of a file that was opened; a file outside all folders gets one of its own."""
        checker = self.checker_of(path)
        if checker is not None or set(path.parts).intersection(DEFAULT_EXCLUDES):
            return checker
        root = _project(path)
        checker = self.add_folder(root, (path.relative_to(root).as_posix(),))
        self.in_background(self.ask_for_settings())
        return checker

    # --- texts --------------------------------------------------------------------------------

    def buffers(self, folder: Folder) -> dict[Path, str]:
        """The open texts that are not what lies on the disk."""
        held = {}
        for document in self.workspace.text_documents.values():
            path = path_of(document.uri)
            if path is not None and path.suffix in (".py", ".pyi", ".pyw"):
                text = document.source
                try:
                    same = path.read_bytes() == text.encode("utf-8", "surrogatepass")
                except OSError:
                    same = False
                if not same:
                    held[path] = text
        return held

    def text_of(self, path: Path) -> Text:
        """The text of a file: the editor's, if it is open there."""
        document = self.workspace.text_documents.get(_key(path))
        if document is not None:
            return Text(document.source, self.encoding)
        try:
            return Text(path.read_bytes().decode("utf-8", "replace"), self.encoding)
        except OSError:
            return Text("", self.encoding)

    @property
    def encoding(self) -> str:
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))

    # --- what the editor is told --------------------------------------------------------------

    def diagnostics_of(self, folder: Folder) -> dict[str, list[types.Diagnostic]]:
        """The diagnostics of a folder by file; files of an inner folder are that folder's."""
        found: dict[str, list[types.Diagnostic]] = {}
        for result in folder.results():
            path = folder.absolute(result.location.file)
            checker = self.checker_of(path)
            if checker is None or checker.folder is folder:
                shown = diagnostics.diagnostic(result, folder.root, self.text_of, related=self.shows_related)
                found.setdefault(diagnostics.uri_of(path), []).append(shown)
        return found

    @property
    def shows_related(self) -> bool:
        given = self.client_capabilities.text_document
        shown = given.publish_diagnostics if given else None
        return bool(shown and shown.related_information)

    async def publish(self, folder: Folder) -> None:
        """Show what has become of a folder."""
        if folder.problem:
            self.tell(f"{folder.root.name}: {folder.problem}", types.MessageType.Error)
        if self.pulls:
            await self.workspace_diagnostic_refresh_async(None)
            return
        everything: dict[str, list[types.Diagnostic]] = {}
        for checker in self.checkers.values():
            for uri, items in self.diagnostics_of(checker.folder).items():
                everything.setdefault(uri, []).extend(items)
        opened = {
            diagnostics.uri_of(p) for d in self.workspace.text_documents.values() if (p := path_of(d.uri))
        }
        for uri in sorted({*everything, *self._published, *opened}):
            items = everything.get(uri, [])
            document = self.workspace.text_documents.get(_key_of_uri(uri))
            version = document.version if document else None
            if document is None and items == self._published.get(uri, []):
                continue
            name = document.uri if document else uri
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(name, items, version))
        self._published = {uri: items for uri, items in everything.items() if items}

    def tell(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        self.window_show_message(types.ShowMessageParams(kind, f"warplint: {text}"))

    def in_background(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def make_server() -> WarplintServer:
    """A server with everything that it can do."""
    server = WarplintServer()

    @server.feature(types.INITIALIZE)
    def initialize(ls: WarplintServer, params: types.InitializeParams) -> None:
        ls.initial = params.initialization_options
        given = params.capabilities
        asks = given.text_document is not None and given.text_document.diagnostic is not None
        told = given.workspace is not None and given.workspace.diagnostics is not None
        # An editor that cannot be asked to pull again would never see a verdict.
        ls.pulls = bool(asks and told and given.workspace.diagnostics.refresh_support)  # type: ignore[union-attr]
        if ls.pulls:
            _register_pull(ls)

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
        if params.settings:
            for checker in ls.checkers.values():
                ls.configure(checker.folder, params.settings)
        await ls.ask_for_settings()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def files_changed(ls: WarplintServer, params: types.DidChangeWatchedFilesParams) -> None:
        for checker in ls.checkers.values():
            checker.touch(_PAUSE)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: WarplintServer, params: types.DidOpenTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        checker = ls.opened(path) if path else None
        if checker is not None:
            checker.touch()

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: WarplintServer, params: types.DidChangeTextDocumentParams) -> None:
        _touch(ls, params.text_document.uri, _PAUSE)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(ls: WarplintServer, params: types.DidSaveTextDocumentParams) -> None:
        _touch(ls, params.text_document.uri, 0.0)
        path = path_of(params.text_document.uri)
        checker = ls.checker_of(path) if path else None
        if path is not None and checker is not None and checker.folder.settings.on_save:
            ls.in_background(ls.prover.after_save(checker, path))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: WarplintServer, params: types.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        checker = ls.checker_of(path) if path else None
        if path is not None and checker is not None and checker.folder.paths != (".",):
            ls.remove(path)
        elif path is not None:
            _touch(ls, params.text_document.uri, 0.0)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: WarplintServer, params: types.HoverParams) -> types.Hover | None:
        here = types.Range(params.position, params.position)
        _, path, results = await _at(ls, params.text_document.uri)
        for result in results:
            place = ls.text_of(path).range(result.location)
            rule = load_rules().get(result.rule)
            if rule is not None and touches(place, here):
                value = diagnostics.page(rule, result)
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, value), place)
        return None

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    async def code_action(
        ls: WarplintServer, params: types.CodeActionParams
    ) -> list[types.CodeAction] | None:
        only = params.context.only
        if only and not any(str(kind) in ("", "quickfix") for kind in map(_value, only)):
            return None
        checker, path, results = await _at(ls, params.text_document.uri)
        if checker is None:
            return None
        return actions(
            results,
            checker.folder.root,
            path,
            params.range,
            ls.text_of,
            provable=checker.folder.settings.run is not False,
        )

    @server.command(PROVE)
    async def prove(ls: WarplintServer, target: Any = None) -> None:
        await ls.prover.command(target, verify=False)

    @server.command(VERIFY)
    async def verify(ls: WarplintServer, target: Any = None) -> None:
        await ls.prover.command(target, verify=True)

    @server.command(EVIDENCE)
    async def evidence(ls: WarplintServer, target: Any) -> None:
        uri = target["uri"] if isinstance(target, dict) else str(target)
        window = ls.client_capabilities.window
        if window is not None and window.show_document and window.show_document.support:
            await ls.window_show_document_async(types.ShowDocumentParams(uri=uri, take_focus=True))
        else:
            ls.tell(f"the evidence is in {path_of(uri)}")

    @server.feature(types.SHUTDOWN)
    async def shutdown(ls: WarplintServer, params: None) -> None:
        for checker in ls.checkers.values():
            checker.stop()
        await ls.prover.stop()
        await ls.reader.stop()

    return server


def _register_pull(server: WarplintServer) -> None:
    options = types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=True, identifier="warplint"
    )

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def pull(
        ls: WarplintServer, params: types.DocumentDiagnosticParams
    ) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
        checker, path, _ = await _at(ls, params.text_document.uri)
        found = ls.diagnostics_of(checker.folder) if checker is not None else {}
        items = found.get(diagnostics.uri_of(path), [])
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
            items = everything.get(uri, [])
            name = diagnostics.result_id(items)
            document = ls.workspace.text_documents.get(_key_of_uri(uri))
            version = document.version if document else None
            if known.get(uri) == name:
                reports.append(types.WorkspaceUnchangedDocumentDiagnosticReport(uri, name, version=version))
            else:
                reports.append(
                    types.WorkspaceFullDocumentDiagnosticReport(uri, items, version=version, result_id=name)
                )
        return types.WorkspaceDiagnosticReport(reports)


# --- helpers ----------------------------------------------------------------------------------


async def _at(ls: WarplintServer, uri: str) -> tuple[Checker | None, Path, Iterable[Result]]:
    """The checker of a file and its results there, true of the text as it is now."""
    path = path_of(uri)
    checker = ls.checker_of(path) if path else None
    if path is None or checker is None:
        return None, Path(), ()
    await checker.current()
    file = checker.folder.display(path)
    return checker, path, [r for r in checker.folder.results() if r.location.file == file]


async def _watch(ls: WarplintServer) -> None:
    """Ask to be told of changes that other programs make."""
    workspace = ls.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace else None
    if watching is None or not watching.dynamic_registration:
        return
    options = types.DidChangeWatchedFilesRegistrationOptions(
        [types.FileSystemWatcher(glob) for glob in _WATCHED]
    )
    name = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    await ls.client_register_capability_async(
        types.RegistrationParams([types.Registration("warplint-files", name, options)])
    )


def _add(ls: WarplintServer, uri: str) -> None:
    path = path_of(uri)
    if path is None or not path.is_dir():
        return
    if is_broad(path):
        ls.tell(f"{path} is no project: only the files that are opened in it are checked")
        return
    ls.add_folder(path)


def _touch(ls: WarplintServer, uri: str, delay: float) -> None:
    """A text has changed; it may be imported by programs of other folders as well."""
    path = path_of(uri)
    if path is None:
        return
    ls.prover.text_changed(path)
    own = ls.checker_of(path)
    for checker in ls.checkers.values():
        if checker is own or checker.folder.reaching(checker.folder.display(path)):
            checker.touch(delay)


def path_of(uri: str) -> Path | None:
    """The path of a file on this machine, or None."""
    if not uri.startswith("file:"):
        return None
    path = uris.to_fs_path(uri)
    return Path(os.path.abspath(path)) if path else None


def _key(path: Path) -> str:
    return _key_of_uri(diagnostics.uri_of(path))


def _key_of_uri(uri: str) -> str:
    from urllib.parse import unquote

    return unquote(uri)


def _value(kind: Any) -> str:
    return str(getattr(kind, "value", kind))


def _own(value: Any) -> Any:
    """Settings may come in a table of the server's name, or as they are."""
    for name in ("settings", "warplint"):
        if isinstance(value, dict) and isinstance(value.get(name), dict):
            value = value[name]
    return value


def _project(path: Path) -> Path:
    """The directory a single file is checked from."""
    for directory in path.parents:
        if is_broad(directory):
            break
        if any((directory / marker).exists() for marker in _MARKERS):
            return directory
    return path.parent
