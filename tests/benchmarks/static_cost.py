"""What the static pass costs beside ``ruff check`` and beside nothing but parsing with libcst.

``python tests/benchmarks/static_cost.py TREE...`` prints wall times from shell to exit: ruff,
libcst, warplint with nothing known of earlier runs and with everything known; the best of
``--rounds`` each, in turn, because machines are noisy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measuring import Row, script, spent

TAPED = """\
import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


x = wp.zeros(3, dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, 3, [x], [y])
tape.backward(grads={y: wp.ones_like(y)})
"""
PLAIN = "import warp as wp\n\nprint(wp.sin(1.0))\n"
PARSE = """\
import sys, pathlib, libcst
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    try:
        libcst.parse_module(path.read_bytes())
    except libcst.ParserSyntaxError:
        pass
"""
COLD, WARM = 10.0, 1.2
"""Goals: how many times as long as ruff."""


def tree_rows(tree: Path, rounds: int, *, goals: bool = True, name: str = "") -> Iterator[Row]:
    """Rows for one tree of Python files."""
    files = sum(1 for _ in tree.rglob("*.py"))
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        environment = {**os.environ, "WARPLINT_CACHE_DIR": str(cache)}
        check = [script("warplint"), "check", "--no-probe", "."]
        commands = {
            "ruff": [script("ruff"), "check", "--isolated", "--no-cache", "--quiet", "."],
            "libcst": [sys.executable, "-c", PARSE, str(tree)],
            "cold": check,
            "warm": check,
        }
        best: dict[str, float] = {}
        processor: dict[str, float] = {}
        memory = 0.0
        for turn in range(rounds):
            for kind, words in commands.items():
                if kind == "libcst" and turn > 0:
                    continue
                if kind == "cold":
                    shutil.rmtree(cache, ignore_errors=True)
                found = spent(words, Path(folder) if kind == "libcst" else tree, environment)
                best[kind] = min(found.seconds, best.get(kind, found.seconds))
                processor[kind] = min(found.processor, processor.get(kind, found.processor))
                if kind == "cold":
                    memory = max(memory, found.mebibytes)
    times = ", ".join(f"{kind} {best[kind]:.2f} s ({processor[kind]:.2f} s processor)" for kind in best)
    name = name or tree.name
    yield Row(
        f"{name} ({files} files): cold / ruff",
        best["cold"] / best["ruff"],
        "x",
        COLD if goals else None,
        times,
    )
    yield Row(f"{name}: warm / ruff", best["warm"] / best["ruff"], "x", WARM if goals else None)
    yield Row(f"{name}: cold / libcst alone", best["cold"] / best["libcst"], "x")
    yield Row(f"{name}: memory of the largest process", memory, "MiB", 2048)


def start_rows(rounds: int) -> Iterator[Row]:
    """Rows for what is felt in an editor or a hook: the version, one file."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "taped.py").write_text(TAPED)
        (place / "plain.py").write_text(PLAIN)
        environment = {**os.environ, "WARPLINT_CACHE_DIR": str(place / "cache")}
        for name, words, goal in (
            ("warplint --version", ["--version"], 0.15),
            ("one file with a tape, nothing cached", ["check", "--no-probe", "--no-cache", "taped.py"], 1.0),
            ("one file without, nothing cached", ["check", "--no-probe", "--no-cache", "plain.py"], 0.25),
        ):
            times = [
                spent([script("warplint"), *words], place, environment).seconds for _ in range(rounds + 2)
            ]
            yield Row(name, min(times), "s", goal)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for row in start_rows(options.rounds):
        print(row, flush=True)
    for tree in options.trees:
        for row in tree_rows(tree.resolve(), options.rounds):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
