"""What must stay true of the house (docs/ARCHITECTURE.md), read off its imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from warplint.rulebook import load_rules

PACKAGE = Path(__file__).resolve().parent.parent / "warplint"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Room -> rooms and modules of warplint that it may import, besides itself.
ROOMS = {
    "model": set(),
    "config": set(),
    "rulebook": {"model"},
    "dev": set(),
    "store": set(),
    "words": set(),
    "combine": {"model"},
    "buffers": set(),
    "versions": set(),
    "pythons": set(),
    "source": {"model", "store", "buffers", "pythons", "versions"},
    "static": {"model", "source", "checks", "words", "versions"},
    "checks": {"model", "source", "static", "versions"},
    "report": {"model", "rulebook"},
    "cli": {
        *("model", "config", "rulebook", "buffers", "source", "static", "probe"),
        *("fixes", "report", "combine", "server"),
    },
    "server": {
        *("model", "config", "rulebook", "buffers", "source", "static", "checks", "probe", "report", "cli"),
    },
    "fixes": {"model", "source", "probe"},
    "probe": {"model", "store", "combine", "buffers", "words", "pythons", "versions"},
}
NEVER_RUN = ("source", "static", "checks", "report", "cli", "config", "rulebook", "model", "store", "combine")
NEVER_RUN += ("buffers", "words", "fixes", "server", "pythons", "versions")
RUNTIME_MAY = {"numpy", "warp"}
# In the user's process the folder is on the path by itself, under its own name.
RUNTIME_NAMES = {"runtime", *(path.stem for path in (PACKAGE / "probe" / "runtime").glob("*.py"))}


def room(path: Path) -> str:
    """The room a module belongs to: its first folder, or its own name."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imports(path: Path) -> Iterator[str]:
    """Absolute dotted names of all that a module imports, also inside functions."""
    package = ["warplint", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_the_package_is_found():
    assert len(MODULES) > 20


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_rooms_import_only_what_they_may(path):
    own = room(path)
    if own == "__init__":
        return
    assert own in ROOMS, f"{own} is a new room: say in ROOMS and docs/ARCHITECTURE.md what it may import"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "warplint" or name in ("warplint", "warplint.__version__"):
            continue
        target = parts[1] if len(parts) > 1 else ""
        assert target == own or target in ROOMS[own], f"{own} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_rooms_that_only_read_never_import_warp_or_numpy(path):
    if room(path) not in NEVER_RUN:
        return
    for name in imports(path):
        assert name.partition(".")[0] not in ("warp", "numpy"), name


@pytest.mark.parametrize(
    "path",
    sorted((PACKAGE / "probe" / "runtime").rglob("*.py")),
    ids=lambda path: path.relative_to(PACKAGE).as_posix(),
)
def test_the_runtime_stands_alone(path):
    for name in imports(path):
        top = name.partition(".")[0]
        inside = name.startswith("warplint.probe.runtime")
        assert inside or top in RUNTIME_MAY | RUNTIME_NAMES or top in sys.stdlib_module_names, name


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "checks").rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_checks_see_facts_not_syntax_and_never_print(path):
    assert not any(name.partition(".")[0] in ("libcst", "ast") for name in imports(path))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not (isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print")


def test_every_check_has_a_page():
    named = set()
    for path in (PACKAGE / "checks").rglob("*.py"):
        named |= set(re.findall(r"""["'](WL\d{3})["']""", path.read_text(encoding="utf-8")))
    assert named <= set(load_rules())
