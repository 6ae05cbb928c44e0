"""Modules and what they define: imports are followed and definitions made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import libcst as cst

from warplint.source.discovery import SourceFile
from warplint.static.host.core import Frame, dotted
from warplint.static.host.statements import Statements
from warplint.static.host.values import (
    UNKNOWN,
    Class,
    Deferred,
    External,
    Function,
    List,
    Module,
    Names,
    Scope,
    Unknown,
)
from warplint.static.syntax import Piece

__all__ = ["Modules", "made_members"]

_REGISTERING = frozenset(
    {"func_grad", "func_replay", "grad", "replay", "overload", "setter", "getter", "deleter"}
)
"""Decorators that change something that is already there: they run in their place."""


class Modules(Statements):
    """Imports, and the pieces of modules and classes."""

    # -- modules ------------------------------------------------------------------------------

    def import_module(self, file: SourceFile) -> Module | None:
        """The module of a file, executed on first import (cycles see it half done, as in Python)."""
        module = self.modules.get(file.path)
        if module is not None:
            return module
        source = self.project.parse(file)
        if source is None:
            self.skip(f"{file.display}: {file.problem or 'cannot be parsed'}")
            return None
        module = Module(file.path.stem, source, no_backward=self.no_backward.get(None))
        self.modules[file.path] = module
        self.run_module(module, "__main__" if file.path == self.script.path else file.path.stem)
        for other in self.project.registrars(file, self.script):
            self.import_module(other)
        return module

    def run_module(self, module: Module, name: str) -> None:
        module.scope.names.update({"__name__": name, "__file__": module.source.display, "__doc__": None})
        with self.aside(module, module.scope):
            self.frame.may_yield = "yield" in module.source.file.text
            try:
                for piece in module.source.pieces:
                    if piece.kind == "main" and name != "__main__":
                        continue
                    if self.piece(piece, module) is not None:
                        break
            finally:
                module.done = True

    def piece(self, piece: Piece, module: Module) -> Any:
        """Carry out a piece of a module or of a class body, or put it off."""
        self.step()
        if piece.kind == "import":
            self._import_piece(piece)
            return None
        if piece.kind in ("function", "class") and self._may_wait(piece):
            scope = self.frame.scope
            names: Any = scope.names
            self.touch(names)
            names[piece.name] = Deferred(lambda: self._define(piece, module, scope))
            self.note(scope.bindings, piece.name, None)
            return None
        if piece.kind == "class":
            self.bind(piece.name, self._define(piece, module, self.frame.scope))
            return None
        for statement in module.source.statements(piece):
            signal = self.statement(statement)
            if signal is not None:
                return signal
        return None

    def _may_wait(self, piece: Piece) -> bool:
        """Whether nobody can tell when a definition is carried out."""
        for name in piece.decorators:
            if not name or name.rpartition(".")[2] in _REGISTERING:
                return False
            root = name.partition(".")[0]
            scope = self.frame.scope.find(root)
            if scope is None:
                continue
            value = scope.names.raw(root) if isinstance(scope.names, Names) else scope.names[root]
            if not isinstance(value, (External, Unknown)):
                return False  # a decorator of the project may keep what it gets
        return True

    def _define(self, piece: Piece, module: Module, scope: Scope) -> Any:
        """The function or class of a piece."""
        with self.aside(module, scope):
            self.frame.may_yield = "yield" in module.source.text(piece)
            if piece.kind == "class":
                header = module.source.class_header(piece)
                if header is not None:
                    return self.make_class(header, lambda: self._members(piece, module))
            for statement in module.source.statements(piece):
                if isinstance(statement, cst.FunctionDef):
                    return self.make_function(statement)
                if isinstance(statement, cst.ClassDef):
                    return self.make_class(statement)
        self.skip(f"{module.source.display}: {piece.name} cannot be parsed")
        return UNKNOWN

    def _members(self, piece: Piece, module: Module) -> None:
        for member in piece.members:
            if member.kind == "code":
                self.note_fields(module.source.statements(member))
            self.piece(member, module)

    @contextmanager
    def aside(self, module: Module, scope: Scope) -> Iterator[None]:
        """Work that belongs to a module, whatever the interpretation is in the middle of."""
        saved = (self.frames, self.turns, self.guards, self.active, self.waiting, self._journals)
        self.frames, self.turns, self.guards = [Frame(scope, module)], [], {}
        self.active, self.waiting, self._journals = [], [], []
        try:
            yield
        finally:
            self.frames, self.turns, self.guards, self.active, self.waiting, self._journals = saved

    # -- imports ------------------------------------------------------------------------------

    def _import_piece(self, piece: Piece) -> None:
        if piece.module is None:
            self._import_names(piece.names)
        else:
            self._import_from_names(piece.module, piece.level, piece.names)

    def _import(self, node: cst.Import) -> None:
        self._import_names([(dotted(a.name), _asname(a)) for a in node.names])

    def _import_from(self, node: cst.ImportFrom) -> None:
        name = dotted(node.module) if node.module is not None else ""
        if isinstance(node.names, cst.ImportStar):
            names: list[tuple[str, str | None]] = [("*", None)]
        else:
            names = [(dotted(a.name), _asname(a)) for a in node.names]
        self._import_from_names(name, len(node.relative), names)

    def _import_names(self, names: Sequence[tuple[str, str | None]]) -> None:
        for name, asname in names:
            first = name.partition(".")[0]
            if asname or first == name:
                self.bind(asname or name, self._later(name, 0) or External(name))
                continue
            package = self._load(first, 0)
            if package is None:
                self.bind(first, External(first))
                continue
            self.bind(first, package)
            self._link(package, name.split(".")[1:], first)

    def _link(self, package: Module, parts: list[str], prefix: str) -> None:
        """``import a.b.c`` makes ``b`` an attribute of ``a`` and so on."""
        current = package
        for part in parts:
            prefix = f"{prefix}.{part}"
            loaded = self._load(prefix, 0)
            if loaded is None:
                return
            current.scope.names[part] = loaded
            current = loaded

    def _find(self, name: str, level: int) -> SourceFile | None:
        importer = self.frame.module.source.file.path
        return self.project.resolver.resolve(name, level, importer, self.script.path)

    def _load(self, name: str, level: int) -> Module | None:
        file = self._find(name, level)
        return self.import_module(file) if file is not None else None

    def _later(self, name: str, level: int) -> Any:
        """A module of the tree: at once if its code does something, else when it is needed."""
        file = self._find(name, level)
        if file is None:
            return None
        if file.path in self.modules or self.project.changes_warp(file, self.script):
            return self.import_module(file) or UNKNOWN
        return Deferred(lambda: self.import_module(file) or UNKNOWN)

    def _import_from_names(self, name: str, level: int, names: Sequence[tuple[str, str | None]]) -> None:
        if any(wanted == "*" for wanted, _ in names):
            self._import_star(self._load(name, level), name)
            return
        module = self._later(name, level) if name or level else None
        importer = self.frame.module
        for wanted, asname in names:
            value: Any
            if module is not None:
                value = self._taken(module, name, wanted, level, importer)
            else:
                submodule = self._later(f"{name}.{wanted}" if name else wanted, level)
                unknown = UNKNOWN if level else External(f"{name}.{wanted}")
                value = submodule if submodule is not None else unknown
            self.bind(asname or wanted, value)

    def _taken(self, module: Any, name: str, wanted: str, level: int, importer: Module) -> Any:
        """One name out of a module, when it is needed."""
        if isinstance(module, Module):
            names = module.scope.names
            if wanted in names:
                return names.raw(wanted) if isinstance(names, Names) else names[wanted]

        def take() -> Any:
            loaded = module.get() if isinstance(module, Deferred) else module
            if not isinstance(loaded, Module):
                return UNKNOWN
            if wanted in loaded.scope.names:
                return loaded.scope.names[wanted]
            with self.aside(importer, importer.scope):
                submodule = self._load(f"{name}.{wanted}" if name else wanted, level)
            return submodule if submodule is not None else UNKNOWN

        return Deferred(take) if isinstance(module, Deferred) else take()

    def _import_star(self, module: Module | None, name: str) -> None:
        if module is None:
            if name.partition(".")[0] == "warp":
                for known in _STAR_NAMES:
                    self.bind(known, External(f"warp.{known}"))
            return
        names: Any = module.scope.names
        exported = names.get("__all__")
        wanted = [n for n in names if not n.startswith("_")]
        if isinstance(exported, (List, tuple)):
            items = exported.items if isinstance(exported, List) else exported
            wanted = [n for n in items if isinstance(n, str)]
        for item in wanted:
            if item in names:
                self.bind(item, names.raw(item) if isinstance(names, Names) else names[item])


def made_members(module: Module) -> Iterator[tuple[str, Function]]:
    """Functions that have been made, with their qualified names, those of classes included."""
    for name in module.scope.names:
        value = _made(module.scope.names, name)
        if isinstance(value, Function) and value.module is module:
            yield name, value
        elif isinstance(value, Class) and value.module is module:
            for inner in value.attributes:
                member = _made(value.attributes, inner)
                if isinstance(member, Function) and member.module is module:
                    yield f"{name}.{inner}", member


def _made(names: Any, name: str) -> Any:
    value = names.raw(name) if isinstance(names, Names) else names[name]
    if isinstance(value, Deferred):
        return value.get() if value.done else UNKNOWN
    return value


def _asname(alias: Any) -> str | None:
    return alias.asname.name.value if alias.asname is not None else None


# fmt: off
_STAR_NAMES = (
    "array", "array2d", "array3d", "array4d", "kernel", "func", "struct", "launch", "launch_tiled", "Tape",
    "zeros", "ones", "full", "empty", "clone", "copy", "zeros_like", "empty_like", "ones_like", "full_like",
    "vec2", "vec3", "vec4", "mat22", "mat33", "quat", "float32", "float64", "int32", "tid", "atomic_add",
    "atomic_sub", "sin", "cos", "tanh", "exp", "log", "sqrt", "length", "normalize", "dot", "cross", "min",
    "max", "abs", "clamp", "init",
)
# fmt: on
