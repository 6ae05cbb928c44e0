"""The texts of a session: files on the disk, what the editor holds of them, and cells of notebooks."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from pygls import uris
from pygls.workspace import TextDocument, Workspace

from warplint.model import Location
from warplint.server.texts import Text
from warplint.source.notebooks import file_line, is_notebook


@dataclass(frozen=True)
class Place:
    """A region as an editor has it: the document, its text, and the region in that text."""

    uri: str
    text: Text
    location: Location

    @property
    def range(self) -> types.Range:
        return self.text.range(self.location)


class Documents:
    """What the editor and the disk say, in the editor's units."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        encoding: Any = workspace.position_encoding
        self.encoding = str(getattr(encoding, "value", encoding))
        self._read: dict[Path, Text] = {}

    def unsaved(self) -> dict[Path, str]:
        """The open texts that are not what lies on the disk; a notebook as it would be saved."""
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
        for notebook in self.workspace.notebook_documents.values():
            path = path_of(notebook.uri)
            if path is not None:
                held[path] = self._written(notebook)
        return held

    def open_uris(self) -> list[str]:
        """The URIs of all open texts of Python, as the editor spells them."""
        return [document.uri for document in self.workspace.text_documents.values()]

    def version(self, uri: str) -> int | None:
        document = self.workspace.text_documents.get(unquote(uri))
        return document.version if document is not None else None

    def find(self, uri: str) -> tuple[Path | None, int]:
        """The file of a document, and which cell of it the document is (0: all of it)."""
        notebook = self.workspace.get_notebook_document(cell_uri=uri)
        if notebook is None:
            return path_of(uri), 0
        cells = [unquote(cell.document) for cell in notebook.cells]
        return path_of(notebook.uri), cells.index(unquote(uri)) + 1 if unquote(uri) in cells else 0

    def place(self, root: Path, location: Location) -> Place:
        """Where a place of a report is in the editor."""
        path = root / location.file
        if location.cell:
            cell = self._cell(path, location.cell)
            if cell is not None:
                return Place(cell.uri, Text(cell.source, self.encoding), location)
            # A notebook that is not open is a file; its lines are those of the file.
            data = _bytes(path)
            line = file_line(data, location.cell, location.line)
            text = Text(data.decode("utf-8", "replace"), self.encoding)
            return Place(uri_of(path), text, Location(location.file, line))
        uri = uri_of(path)
        document = self.workspace.text_documents.get(unquote(uri))
        if document is not None:
            return Place(document.uri, Text(document.source, self.encoding), location)
        if path not in self._read:
            self._read[path] = Text(_bytes(path).decode("utf-8", "replace"), self.encoding)
        return Place(uri, self._read[path], location)

    def _cell(self, path: Path, number: int) -> TextDocument | None:
        notebook = self.workspace.get_notebook_document(notebook_uri=uri_of(path))
        if notebook is None or number > len(notebook.cells):
            return None
        return self.workspace.text_documents.get(unquote(notebook.cells[number - 1].document))

    def _written(self, notebook: types.NotebookDocument) -> str:
        cells = []
        for cell in notebook.cells:
            document = self.workspace.text_documents.get(unquote(cell.document))
            python = cell.kind is types.NotebookCellKind.Code and (
                document is None or document.language_id in (None, "python")
            )
            source = document.source if document is not None else ""
            cells.append({"cell_type": "code" if python else "markdown", "source": source})
        return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def path_of(uri: str) -> Path | None:
    """The path of a file on this machine, or None."""
    if not uri.startswith("file:"):
        return None
    path = uris.to_fs_path(uri)
    return Path(os.path.abspath(path)) if path else None


def uri_of(path: Path) -> str:
    return str(uris.from_fs_path(str(path)))


def is_python(path: Path) -> bool:
    return path.suffix in (".py", ".pyi", ".pyw") or is_notebook(path.name)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
