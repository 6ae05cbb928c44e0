"""Runs the user's file as ``__main__``, as it stands, with its own arguments and directory."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from . import horizon


def run(
    path: str, arguments: list[str], directory: str, module: str | None = None, import_root: str | None = None
) -> None:
    """Executes the program, as ``python path`` or ``python -m module``; whatever it raises comes out."""
    global _main
    os.chdir(directory)
    sys.argv = [path, *arguments]
    # As ``python path`` does: the script's own directory comes first. (The runtime's parent
    # was put there to import this package; it must not shadow a module of the user's.)
    sys.path[0] = import_root or os.path.dirname(path)
    if module is None:
        runpy.run_path(path, run_name="__main__")
        return
    _main = os.path.realpath(path)
    if module == "pytest" and importlib.util.find_spec("xdist") is not None:
        sys.argv[1:1] = ["-n0"]  # in this process, whatever the project's own options say
    runpy.run_module(module, run_name="__main__", alter_sys=True)


_main: str | None = None
"""The file of the program if it is run as a module: its names are those of ``__main__``, too."""


OVERRIDDEN: set[str] = set()
"""What was replaced in this process so far, as ``module.NAME``."""
MET: set[str] = set()
"""Modules with constants to replace that this process has loaded."""


LITERALS: dict[str, list[horizon.Literal]] = {}
"""Numbers to replace, by real path of the file: a shortened horizon."""


def override_constants(overrides: Mapping[str, Mapping[str, str]]) -> None:
    """Replaces module-level constants, and the numbers in ``LITERALS``, as modules are imported.

    ``overrides`` maps a module's name (``__main__`` or the script's stem for the program
    itself) to names and the Python expressions that replace the assigned value.
    """
    loader = importlib.machinery.SourceFileLoader
    original_get = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        wanted = overrides.get(fullname) or {}
        names = [fullname]
        if _main is not None and os.path.realpath(self.path) == _main:
            names += ["__main__", os.path.splitext(os.path.basename(_main))[0]]
            wanted = {
                name: value for known in reversed(names) for name, value in overrides.get(known, {}).items()
            }
            MET.update(names)
        literals = LITERALS.get(os.path.realpath(self.path)) if LITERALS else None
        if not wanted and not literals:
            return original_get(self, fullname)
        MET.add(fullname)
        tree = _substituted(self.get_data(self.path), wanted, literals or (), *names)
        return compile(tree, self.path, "exec", dont_inherit=True)

    loader.get_code = get_code  # type: ignore[method-assign]

    original_run = runpy._get_code_from_file  # type: ignore[attr-defined]

    def get_main(*args: Any) -> Any:
        path = os.fspath(args[-1])  # (fname) or, before 3.12, (run_name, fname)
        stem = os.path.splitext(os.path.basename(path))[0]
        wanted = {**overrides.get("__main__", {}), **overrides.get(stem, {})}
        MET.update({"__main__", stem})
        literals = LITERALS.get(os.path.realpath(path)) if LITERALS else None
        if not wanted and not literals:
            return original_run(*args)
        with open(path, "rb") as file:
            tree = _substituted(file.read(), wanted, literals or (), "__main__", stem)
        code = compile(tree, path, "exec", dont_inherit=True)
        result = original_run(*args)
        return (code, path) if isinstance(result, tuple) else code

    runpy._get_code_from_file = get_main  # type: ignore[attr-defined]


def _substituted(
    source: bytes, wanted: Mapping[str, str], literals: Iterable[horizon.Literal], *modules: str
) -> ast.Module:
    tree = ast.parse(source)
    horizon.Replace(literals).visit(tree)
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target = node.target
        else:
            continue
        if isinstance(target, ast.Name) and target.id in wanted:
            OVERRIDDEN.update(f"{module}.{target.id}" for module in modules)
            value = ast.parse(wanted[target.id], mode="eval").body
            for part in ast.walk(value):
                ast.copy_location(part, node.value)  # type: ignore[arg-type]
            node.value = value
    return ast.fix_missing_locations(tree)
