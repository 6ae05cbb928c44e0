"""The whole table: ``python tests/benchmarks/table.py [--newton TREE] [--numerics COUNT]``.

Static cost on newton, on the installed warp and on generated repositories; start-up; probes
against gradcheck and as programs grow; what the hooks add. Exits with 1 where a goal is missed.
Quote the ratios: the times are those of one machine on one day, which the first lines name.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hook_cost
import probe_cost
import static_cost
from generated_tree import write_tree
from measuring import Row


def installed(package: str) -> Path | None:
    """Where a package's files lie, without importing it."""
    found = importlib.util.find_spec(package)
    return Path(found.origin).parent if found is not None and found.origin else None


def static_rows(newton: Path | None, files: int, rounds: int) -> Iterator[Row]:
    yield from static_cost.start_rows(rounds)
    if newton is not None:
        yield from static_cost.tree_rows(newton, rounds)
    warp = installed("warp")
    if warp is not None:
        yield from static_cost.tree_rows(warp, rounds, goals=False)
    for count in (files // 10, files):
        with tempfile.TemporaryDirectory() as folder:
            write_tree(Path(folder), count)
            yield from static_cost.tree_rows(Path(folder), max(1, rounds - 1), goals=False, name="generated")


def dynamic_rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from hook_cost.rows(Path(folder))
    yield from probe_cost.rows()


def versions() -> str:
    names = ("warplint", "warp-lang", "libcst", "networkx", "numpy", "ruff")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--newton", type=Path, default=installed("newton"), help="newton's package folder")
    parser.add_argument("--files", type=int, default=5000, help="size of the generated repository")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("static", "probe"))
    options = parser.parse_args()

    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    print(f"{datetime.date.today()}, {os.cpu_count()} cores, {system}")
    print(versions())
    print(f"load before: {os.getloadavg()[0]:.1f}", flush=True)
    missed = 0
    if options.only != "probe":
        for row in static_rows(options.newton, options.files, options.rounds):
            print(row, flush=True)
            missed += not row.met
    if options.only != "static":
        for row in dynamic_rows():
            print(row, flush=True)
            missed += not row.met
    if options.newton is None:
        print("newton is not installed here: name its package folder with --newton")
    print(f"{missed} goals missed" if missed else "all goals met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
