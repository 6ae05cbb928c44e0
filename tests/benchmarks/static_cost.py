"""What the static pass costs beside ``ruff check``: ``python tests/benchmarks/static_cost.py TREE``.

TREE is a folder of Python files (an installed newton, say). Prints wall times from shell to exit:
ruff, then warplint with nothing known of earlier runs and with everything known, then one small
file with and without a tape; the best of ``--rounds`` each, in turn, because machines are noisy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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
GOALS = {
    "cold / ruff": 15.0,
    "warm / ruff": 1.5,
    "small file with a tape, s": 1.0,
    "small file without, s": 0.25,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    tree = options.tree.resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "taped.py").write_text(TAPED)
        (place / "plain.py").write_text("import warp as wp\n\nprint(wp.sin(1.0))\n")
        environment = {**os.environ, "WARPLINT_CACHE_DIR": str(place / "cache")}

        def timed(words: list[str], directory: Path, before: Callable[[], None] = lambda: None) -> float:
            before()
            start = time.perf_counter()
            done = subprocess.run(words, cwd=directory, env=environment, stdout=subprocess.DEVNULL)
            if done.returncode not in (0, 1):
                raise SystemExit(f"{words[0]} failed with {done.returncode}")
            return time.perf_counter() - start

        def forget() -> None:
            shutil.rmtree(place / "cache", ignore_errors=True)

        scripts = Path(sys.executable).parent
        warplint = [str(scripts / "warplint"), "check", "--no-probe"]
        ruff = [str(scripts / "ruff"), "check", "--isolated", "--no-cache", "--quiet", "."]
        rows: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            rows.setdefault("ruff", []).append(timed(ruff, tree))
            rows.setdefault("cold", []).append(timed([*warplint, "."], tree, forget))
            rows.setdefault("warm", []).append(timed([*warplint, "."], tree))
            for name in ("taped", "plain"):
                rows.setdefault(name, []).append(timed([*warplint, f"{name}.py"], place, forget))
    best = {name: min(times) for name, times in rows.items()}
    measured = {
        "cold / ruff": best["cold"] / best["ruff"],
        "warm / ruff": best["warm"] / best["ruff"],
        "small file with a tape, s": best["taped"],
        "small file without, s": best["plain"],
    }
    print(f"{sum(1 for _ in tree.rglob('*.py'))} files; seconds:", end=" ")
    print(", ".join(f"{name} {seconds:.2f}" for name, seconds in best.items()))
    for name, value in measured.items():
        print(f"{name:28} {value:6.2f}   goal {GOALS[name]:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
