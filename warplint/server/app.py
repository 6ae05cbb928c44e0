"""The server's state: the folders of an editor, and what is shown of them."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from warplint import __version__
from warplint.config import ConfigError
from warplint.probe.scratch import is_broad
from warplint.server import diagnostics
from warplint.server.documents import Documents, is_python, uri_of
from warplint.server.folders import Checker, Folder
from warplint.server.proving import Prover
from warplint.server.requests import Worker
from warplint.server.settings import merged, read
from warplint.source.discovery import DEFAULT_EXCLUDES

_PATIENCE = 10.0
"""Seconds after which an editor that does not answer is taken to have no settings."""
_MARKERS = ("pyproject.toml", "warplint.toml", "setup.py", ".git")


class WarplintServer(LanguageServer):
    """The folders of one editor, and what is going on in them."""

    def __init__(self) -> None:
        notebooks = types.NotebookDocumentFilterWithNotebook("jupyter-notebook")
        super().__init__(
            "warplint",
            __version__,
            # With whole texts, lines are cut where the protocol cuts them and nowhere else.
            types.TextDocumentSyncKind.Full,
            types.NotebookDocumentSyncOptions(notebook_selector=[notebooks], save=True),
        )
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
        checker = Checker(folder, self.reader, lambda: self.documents.unsaved(), self.publish)
        self.checkers[root / paths[0] if folder.alone else root] = checker
        self.configure(folder, None)
        return checker

    def remove(self, key: Path) -> None:
        checker = self.checkers.pop(key, None)
        if checker is not None:
            checker.stop()
            self.prover.folder_closed(checker)
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
                types.ConfigurationItem(scope_uri=uri_of(c.folder.root), section="warplint") for c in checkers
            ]
            asked = self.workspace_configuration_async(types.ConfigurationParams(items))
            values: Any = ()
            with contextlib.suppress(asyncio.TimeoutError, JsonRpcException):
                values = await asyncio.wait_for(asked, _PATIENCE) or ()
            for checker, value in zip(checkers, values, strict=False):
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

    def touch(self, path: Path | None, delay: float) -> None:
        """A text has changed; it may be imported by programs of other folders as well."""
        if path is None or not (is_python(path) or path.suffix == ".toml"):
            return
        self.prover.text_changed(path)
        own = self.checker_of(path)
        for checker in self.checkers.values():
            if checker is own or checker.folder.reaching(checker.folder.display(path)):
                checker.touch(delay)

    # --- what the editor is told --------------------------------------------------------------

    @property
    def documents(self) -> Documents:
        return Documents(self.workspace)

    def diagnostics_of(self, folder: Folder) -> dict[str, list[types.Diagnostic]]:
        """The diagnostics of a folder by document; files of an inner folder are that folder's."""
        found: dict[str, list[types.Diagnostic]] = {}
        documents = self.documents
        for result in folder.results():
            checker = self.checker_of(folder.absolute(result.location.file))
            if checker is None or checker.folder is folder:
                shown = diagnostics.diagnostic(result, folder.root, documents, related=self.shows_related)
                uri = documents.place(folder.root, result.location).uri
                found.setdefault(uri, []).append(shown)
        return found

    @property
    def shows_related(self) -> bool:
        given = self.client_capabilities.text_document
        shown = given.publish_diagnostics if given else None
        return bool(shown and shown.related_information)

    async def publish(self, folder: Folder) -> None:
        """Show what has become of a folder."""
        if folder.problem and folder.problem != folder.told:
            self.tell(f"{folder.root.name}: {folder.problem}", types.MessageType.Error)
        folder.told = folder.problem
        if self.pulls:
            await self.workspace_diagnostic_refresh_async(None)
            return
        everything: dict[str, list[types.Diagnostic]] = {}
        for checker in self.checkers.values():
            for uri, items in self.diagnostics_of(checker.folder).items():
                everything.setdefault(uri, []).extend(items)
        documents = self.documents
        for uri in sorted({*everything, *self._published, *documents.open_uris()}):
            items, version = everything.get(uri, []), documents.version(uri)
            if version is not None or items != self._published.get(uri, []):
                told = types.PublishDiagnosticsParams(uri, items, version)
                self.text_document_publish_diagnostics(told)
        self._published = {uri: items for uri, items in everything.items() if items}

    def tell(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        self.window_show_message(types.ShowMessageParams(kind, f"warplint: {text}"))

    def in_background(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


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
