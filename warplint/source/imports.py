"""Where an import leads inside the checked tree.

Imports are resolved the way the interpreter would resolve them for a script: the directory of
the script first, then the roots of the packages on the way, then the root of the run and its
``src`` folder. Whatever is not found there (site-packages, the standard library) is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from warplint.source.discovery import DEFAULT_EXCLUDES, SourceFile, display_path

__all__ = ["ImportResolver", "ImportedModule", "imported_modules"]


LIBRARIES = frozenset({"warp", "numpy", "torch", "jax", "newton"})
"""Never followed, even when their source lies in the tree: the static pass knows what they do."""


@dataclass(frozen=True)
class ImportedModule:
    """One module named by an import statement, and the names taken from it."""

    name: str
    level: int = 0
    names: tuple[str, ...] = ()


def imported_modules(tree: ast.Module) -> Iterator[ImportedModule]:
    """Every import of a file, wherever it stands (function bodies included)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield ImportedModule(alias.name)
        elif isinstance(node, ast.ImportFrom):
            yield ImportedModule(node.module or "", node.level, tuple(a.name for a in node.names))


@lru_cache(maxsize=4096)
def _imports_of(file: SourceFile) -> tuple[ImportedModule, ...]:
    return tuple(imported_modules(file.tree)) if file.tree is not None else ()


class ImportResolver:
    """Resolves module names to files; loads files next to the checked ones on demand."""

    def __init__(self, files: Iterable[SourceFile], root: Path) -> None:
        self.root = root
        self._files: dict[Path, SourceFile | None] = {f.path: f for f in files}
        self._find = lru_cache(maxsize=None)(self._find_uncached)

    def file(self, path: Path) -> SourceFile | None:
        """The file at ``path``: a checked one, or one that lies beside it in the same tree."""
        if path not in self._files:
            known = path.is_file() and not any(part in DEFAULT_EXCLUDES for part in path.parts)
            self._files[path] = SourceFile(path, display_path(path, self.root)) if known else None
        return self._files[path]

    def resolve(self, name: str, level: int, importer: Path, script: Path) -> SourceFile | None:
        """The file that ``import name`` (or ``from ...name import``) loads, or None."""
        if level:
            base = importer.parent
            for _ in range(level - 1):
                base = base.parent
            return self._find(base, name) if name else self.file(base / "__init__.py")
        if name.partition(".")[0] in LIBRARIES:
            return None
        for base in self._search_path(importer, script):
            found = self._find(base, name)
            if found is not None and found.path != importer:
                return found
        return None

    def packages(self, name: str, level: int, importer: Path, script: Path) -> list[SourceFile]:
        """The ``__init__`` files that importing ``a.b.c`` runs on the way."""
        parts = name.split(".") if name else []
        found = []
        for end in range(1, len(parts)):
            package = self.resolve(".".join(parts[:end]), level, importer, script)
            if package is not None:
                found.append(package)
        return found

    def closure(self, script: SourceFile) -> tuple[SourceFile, ...]:
        """The files a script imports, transitively, itself included; sorted by display path."""
        seen: dict[Path, SourceFile] = {script.path: script}
        queue = [script]
        while queue:
            current = queue.pop()
            if current.tree is None:
                continue
            for target in self._direct(current, script.path):
                if target.path not in seen:
                    seen[target.path] = target
                    queue.append(target)
        return tuple(sorted(seen.values(), key=lambda f: f.display))

    def _direct(self, file: SourceFile, script: Path) -> Iterator[SourceFile]:
        for item in _imports_of(file):
            yield from self.packages(item.name, item.level, file.path, script)
            module = self.resolve(item.name, item.level, file.path, script)
            if module is not None:
                yield module
            for name in item.names:
                # ``from package import module``
                dotted = f"{item.name}.{name}" if item.name else name
                submodule = self.resolve(dotted, item.level, file.path, script)
                if submodule is not None:
                    yield submodule

    def _search_path(self, importer: Path, script: Path) -> list[Path]:
        candidates = [
            script.parent,
            package_root(importer),
            package_root(script),
            self.root,
            self.root / "src",
        ]
        return list(dict.fromkeys(candidates))

    def _find_uncached(self, base: Path, name: str) -> SourceFile | None:
        target = base.joinpath(*name.split("."))
        module = self.file(target.with_name(target.name + ".py"))
        return module if module is not None else self.file(target / "__init__.py")


@lru_cache(maxsize=4096)
def package_root(file: Path) -> Path:
    """The directory that must be on ``sys.path`` for ``file`` to be imported as part of its package."""
    directory = file.parent
    while (directory / "__init__.py").is_file() and directory.parent != directory:
        directory = directory.parent
    return directory
