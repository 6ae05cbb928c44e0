"""Programs: entry files with their arguments, the unit that is run to decide findings."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from warplint.model import Program, from_plain, to_plain
from warplint.source.cache import Cache, digest
from warplint.source.discovery import SourceError, SourceFile, display_path
from warplint.source.imports import ImportResolver
from warplint.source.notebooks import is_notebook
from warplint.source.prepare import remember

__all__ = ["find_programs", "is_test", "program_for_entry", "reaches_tape"]

_ACTIVE_NAMES = frozenset({"Tape", "launch", "launch_tiled"})
_DIRECT = (b"__main__", b"Tape", b"launch")


def find_programs(
    files: Sequence[SourceFile], root: Path | str, *, cache: Cache | None = None
) -> tuple[Program, ...]:
    """The programs among ``files``.

    A program has a ``__main__`` block, or top-level code that records or launches; a module that
    only defines things is a library, and so is a test file: its tests are
    looked at where they reach a finding (``source.pytests``).
    """
    root = Path(os.path.abspath(root))
    cache = cache or Cache()
    if not any(f.screened for f in files):
        return ()
    resolver = ImportResolver(files, root, cache)
    if cache.file is None:
        return _find(files, resolver)
    key = digest(part for f in files for part in (f.display, f.digest))
    stored = cache.get("programs", key)
    try:
        if stored is not None and resolver.still_holds(stored):
            return tuple(from_plain(Program, p) for p in stored["programs"])
    except (TypeError, ValueError, KeyError, AttributeError):
        pass  # damaged: as good as none
    found = _find(files, resolver)
    remember(resolver.known, cache)
    cache.put("programs", key, {"programs": to_plain(found), **resolver.seen()})
    return found


def _find(files: Sequence[SourceFile], resolver: ImportResolver) -> tuple[Program, ...]:
    programs = []
    # A bare script may say no more than ``from package.training import train``.
    words = {b"__main__", b"warp"}
    for file in files:
        if file.screened:
            stem = file.path.parent.name if file.path.stem == "__init__" else file.path.stem
            words.add(stem.encode(errors="replace"))
    any_word = re.compile(b"|".join(re.escape(word) for word in sorted(words)))
    for file in files:
        if is_test(file.path) or file.path.name == "__init__.py":
            continue
        if file.notebook is None and any_word.search(file.data) and _is_program(file, resolver):
            module = _module_name(file, resolver)
            directory = file.path.parent if module is None else resolver.package_root(file.path)
            programs.append(_program(file, (), directory, resolver.closure(file), resolver.root, module))
    return tuple(sorted(programs, key=lambda p: p.file))


def program_for_entry(
    entry: str, root: Path | str, files: Sequence[SourceFile] = (), directory: Path | None = None
) -> Program:
    """The program for an ``--entry 'train.py --small'`` or ``--entry '-m package.train'``.

    It is run in ``directory`` (which is ``root`` if none is given), and found from there.
    """
    root = Path(os.path.abspath(root))
    directory = directory or root
    try:
        words = shlex.split(entry)
    except ValueError as error:
        raise SourceError(f"cannot split the entry {entry!r}: {error}") from error
    if not words:
        raise SourceError("the entry is empty; it names a file and its arguments")
    module = None
    if words[0] == "-m":
        if len(words) < 2:
            raise SourceError("the entry '-m' names no module")
        module, arguments = words[1], words[2:]
        path = _module_file(module, directory)
    else:
        path, arguments = Path(os.path.abspath(directory / words[0])), words[1:]
        if path.is_dir():
            raise SourceError(f"the entry {words[0]} is a directory; name a Python file in it")
        if not path.is_file():
            raise SourceError(f"no such entry file: {words[0]}")
        if is_notebook(path.name):
            raise SourceError(f"{words[0]}: notebooks are read, not run; name a program as the entry")
    resolver = ImportResolver(files, root)
    file = resolver.file(path) or SourceFile(path, display_path(path, root))
    module = module or _module_name(file, resolver)
    return _program(file, tuple(arguments), directory, resolver.closure(file), root, module)


def _module_file(module: str, directory: Path) -> Path:
    """The file that ``python -m module`` runs in a directory, or in its ``src`` folder."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise SourceError(f"the entry '-m {module}' names no module; they are written package.module")
    for base in (directory, directory / "src"):
        for path in (base.joinpath(*parts[:-1], f"{parts[-1]}.py"), base.joinpath(*parts, "__main__.py")):
            if path.is_file():
                return Path(os.path.abspath(path))
    raise SourceError(f"no such module: {module}, neither {'/'.join(parts)}.py nor a package with __main__")


def reaches_tape(file: SourceFile) -> bool:
    """Whether real code of ``file`` mentions a tape or a manual adjoint launch."""
    if b"Tape" not in file.data and b"adjoint" not in file.data:
        return False
    return file.facts.tape


def _program(
    file: SourceFile,
    arguments: tuple[str, ...],
    directory: Path,
    closure: Sequence[SourceFile],
    root: Path,
    module: str | None = None,
) -> Program:
    return Program(
        file=file.display,
        arguments=arguments,
        working_directory=display_path(directory, root),
        closure=tuple(f.display for f in closure),
        reaches_tape=any(reaches_tape(f) for f in closure),
        module=module,
    )


def _module_name(file: SourceFile, resolver: ImportResolver) -> str | None:
    """The name of a program as a module, if it cannot be run as a file.

    A file of a package that imports relatively, or its own package, fails as ``python FILE``.
    """
    parts = file.path.relative_to(resolver.package_root(file.path)).with_suffix("").parts
    if len(parts) == 1:
        return None
    own = any(item.level or item.name.partition(".")[0] == parts[0] for item in file.facts.imports)
    if not own or not all(part.isidentifier() for part in parts):
        return None
    return ".".join(parts[:-1] if parts[-1] == "__main__" else parts)


def is_test(path: Path) -> bool:
    name = path.name
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def _is_program(file: SourceFile, resolver: ImportResolver) -> bool:
    packaged = "__init__.py" in resolver.listing(file.path.parent)
    if packaged and not any(word in file.data for word in _DIRECT):
        return False  # not worth parsing
    return file.facts.main or _runs_at_top_level(file, resolver, packaged)


def _runs_at_top_level(file: SourceFile, resolver: ImportResolver, packaged: bool) -> bool:
    """Whether importing ``file`` launches or records, directly or through what it calls."""
    calls = file.facts.calls
    if not _ACTIVE_NAMES.isdisjoint(calls):
        return True
    if not calls or packaged:
        return False  # a module of a package is a library unless it says otherwise itself
    closure = resolver.closure(file)
    seen: set[str] = set()
    stack = list(calls)
    while stack:
        name = stack.pop()
        if name in _ACTIVE_NAMES:
            return True
        if name not in seen:
            seen.add(name)
            word = name.encode()
            definition = re.compile(rf"\b(?:def|class)\s+{re.escape(name)}\b".encode())
            for other in closure:
                if word in other.data and definition.search(other.data):
                    stack.extend(other.uses.get(name, ()))
    return False
