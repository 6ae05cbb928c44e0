"""Where an import leads inside the checked tree.

Imports are resolved the way the interpreter would resolve them for a script: the directory of
the script first, then the roots of the packages on the way, then the root of the run and its
``src`` folder. Whatever is not found there (site-packages, the standard library) is not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from warplint import buffers
from warplint.source.cache import Cache, digest
from warplint.source.discovery import DEFAULT_EXCLUDES, SourceFile, display_path
from warplint.source.prepare import recall

__all__ = ["LIBRARIES", "ImportResolver"]


LIBRARIES = frozenset({"warp", "numpy", "torch", "jax", "newton"})
"""Never followed, even when their source lies in the tree: the static pass knows what they do."""


class ImportResolver:
    """Resolves module names to files; loads files next to the checked ones on demand."""

    def __init__(self, files: Iterable[SourceFile], root: Path, cache: Cache | None = None) -> None:
        self.root = root
        self.cache = cache or Cache()
        self._files: dict[Path, SourceFile | None] = {f.path: f for f in files}
        self._checked = frozenset(self._files)
        self._found: dict[tuple[Path, str], SourceFile | None] = {}
        self._listings: dict[Path, frozenset[str]] = {}
        self._roots: dict[Path, Path] = {}
        self._imported: dict[tuple[Path, Path, Path], tuple[SourceFile, ...]] = {}

    def file(self, path: Path) -> SourceFile | None:
        """The file at ``path``: a checked one, or one that lies beside it in the same tree."""
        if path not in self._files:
            there = path.is_file() or buffers.held(path) is not None
            known = there and not any(part in DEFAULT_EXCLUDES for part in path.parts)
            self._files[path] = file = SourceFile(path, display_path(path, self.root)) if known else None
            if file is not None:
                recall(file, self.cache)
        return self._files[path]

    @property
    def known(self) -> list[SourceFile]:
        """All files that have been met, checked ones and others."""
        return [file for file in self._files.values() if file is not None]

    def seen(self) -> dict[str, dict[str, str | None]]:
        """What resolving has depended on so far, beside the checked files."""
        listings: dict[str, str | None] = {str(d): digest(sorted(n)) for d, n in self._listings.items()}
        beside = {
            str(path): file.digest if file is not None else None
            for path, file in self._files.items()
            if path not in self._checked
        }
        return {"listings": listings, "beside": beside}

    def still_holds(self, seen: Mapping[str, Mapping[str, str | None]]) -> bool:
        """Whether all that ``seen`` describes is as it was."""
        return all(
            digest(sorted(self.listing(Path(d)))) == known for d, known in seen["listings"].items()
        ) and all(
            (file.digest if (file := self.file(Path(p))) is not None else None) == known
            for p, known in seen["beside"].items()
        )

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
            for target in self.imported(queue.pop(), script.path):
                if target.path not in seen:
                    seen[target.path] = target
                    queue.append(target)
        return tuple(sorted(seen.values(), key=lambda f: f.display))

    def imported(self, file: SourceFile, script: Path) -> tuple[SourceFile, ...]:
        """The files that the imports of one file load when ``script`` is run."""
        key = (file.path, script.parent, self.package_root(script))
        if key not in self._imported:
            self._imported[key] = tuple({f.path: f for f in self._direct(file, script)}.values())
        return self._imported[key]

    def _direct(self, file: SourceFile, script: Path) -> Iterator[SourceFile]:
        for item in file.facts.imports:
            yield from self.packages(item.name, item.level, file.path, script)
            module = self.resolve(item.name, item.level, file.path, script)
            if module is not None:
                yield module
                if module.path.name != "__init__.py":
                    continue
            for name in item.names:
                # ``from package import module``
                dotted = f"{item.name}.{name}" if item.name else name
                submodule = self.resolve(dotted, item.level, file.path, script)
                if submodule is not None:
                    yield submodule

    def package_root(self, file: Path) -> Path:
        """The directory that must be on ``sys.path`` for ``file`` to be a part of its package."""
        if file.parent not in self._roots:
            directory = file.parent
            while "__init__.py" in self.listing(directory) and directory.parent != directory:
                directory = directory.parent
            self._roots[file.parent] = directory
        return self._roots[file.parent]

    def listing(self, directory: Path) -> frozenset[str]:
        """The names in a directory; none if it cannot be read."""
        if directory not in self._listings:
            unsaved = {path.name for path in buffers.below(directory) if path.parent == directory}
            try:
                self._listings[directory] = frozenset({*os.listdir(directory), *unsaved})
            except OSError:
                self._listings[directory] = frozenset(unsaved)
        return self._listings[directory]

    def _search_path(self, importer: Path, script: Path) -> list[Path]:
        candidates = [
            script.parent,
            self.package_root(importer),
            self.package_root(script),
            self.root,
            self.root / "src",
        ]
        return list(dict.fromkeys(candidates))

    def _find(self, base: Path, name: str) -> SourceFile | None:
        key = (base, name)
        if key not in self._found:
            self._found[key] = self._find_uncached(base, name)
        return self._found[key]

    def _find_uncached(self, base: Path, name: str) -> SourceFile | None:
        *packages, last = name.split(".")
        for package in packages:
            if package not in self.listing(base):
                return None
            base = base / package
        names = self.listing(base)
        module = self.file(base / f"{last}.py") if f"{last}.py" in names else None
        if module is not None:
            return module
        return self.file(base / last / "__init__.py") if last in names else None
