"""Which files a program depends on: what it opens for reading, imports, and lists."""

from __future__ import annotations

import os
import sys
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_NOT_FILES = ("/proc/", "/sys/", "/dev/")
_HEARD = frozenset({"open", "os.listdir", "os.scandir"})


class Inputs:
    """Collects, through an audit hook, what a verdict on this program depends on."""

    def __init__(self) -> None:
        self.opened: set[str] = set()
        self.listed: set[str] = set()

    def install(self) -> None:
        # Python calls this for every ``id()`` as well, thousands of times a second: a plain function
        # that asks one question takes a third of the time of a method.
        def hear(name: str, arguments: Any, heard: frozenset[str] = _HEARD) -> None:
            if name in heard:
                self._note(name, arguments)

        sys.addaudithook(hear)

    def _note(self, name: str, arguments: Any) -> None:
        if name != "open":
            self._add(self.listed, arguments[0] if arguments[0] is not None else ".")
            return
        path, _, flags = arguments
        if isinstance(flags, int) and not flags & _WRITES:
            self._add(self.opened, path)

    def _add(self, found: set[str], path: Any) -> None:
        if isinstance(path, (str, bytes, os.PathLike)):
            text = os.fsdecode(path)
            if not text.startswith(_NOT_FILES):
                found.add(os.path.abspath(text))

    def files(self) -> list[str]:
        """Files that were read, imported modules included (their source is not opened where
        compiled bytecode lies beside it)."""
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        imported = {os.path.abspath(file) for file in modules if isinstance(file, str)}
        return sorted(self.opened | imported)

    def listings(self) -> list[str]:
        """Directories whose entries were asked for."""
        return sorted(self.listed)
