"""How often the probe is wrong about random programs: ``python tests/benchmarks/numerics.py``.

Correct programs must never be called wrong; programs with a gradient scaled by 0.95 or with one
path cut must never be called verified. Prints one row for each kind of program and the reasons
of what stayed inconclusive; exits with 1 where a target is missed. Warp's kernel cache is
``WARP_CACHE_PATH`` where set; the first run compiles the six families' kernels. The whole takes
hours: ``--log FILE`` keeps every outcome, and a run with the same file goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "probe" / "numerics"))

from numerics_harness import Run, explain, run_programs, warm_up
from numerics_programs import CORRECT, VARIANTS, RandomProgram, generate

TARGETS = {"inconclusive": 0.10, "inconclusive with kinks": 0.35, "wrong found": 0.80}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="programs of each kind (default 300)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first program")
    parser.add_argument("--jobs", type=int, default=2, help="programs run at the same time")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--families", nargs="+", help="only these families (springs, network, …)")
    parser.add_argument("--verbose", action="store_true", help="explain every unexpected outcome")
    parser.add_argument("--log", type=Path, help="append outcomes; skip the programs already in it")
    options = parser.parse_args()

    seeds = range(options.first, options.first + options.count)
    programs = [generate(seed, variant) for variant in options.variants for seed in seeds]
    if options.families:
        programs = [p for p in programs if p.family in options.families]
    known = read_log(options.log, programs)
    wanted = [p for p in programs if p.name not in known]
    warm_up(wanted)
    began = time.monotonic()
    done = 0

    def tell(run: Run) -> None:
        nonlocal done
        done += 1
        if options.log is not None:
            write_log(options.log, run)
        expected = "verified" if run.program.variant == CORRECT else "wrong"
        if options.verbose and run.status != expected:
            print("\n".join(explain(run)), flush=True)
        if sys.stderr.isatty():
            print(f"\r{done}/{len(wanted)}", end="", file=sys.stderr, flush=True)

    runs = [*known.values(), *run_programs(wanted, jobs=options.jobs, tell=tell)]
    print_table(runs)
    print(f"{time.monotonic() - began:.0f} s")
    missed = misses(runs)
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


_LOGGED = ("status", "reason", "forward_passes", "seconds")


def read_log(log: Path | None, programs: list[RandomProgram]) -> dict[str, Run]:
    """The outcomes of ``programs`` that an earlier run has written, by the program's name."""
    if log is None or not log.exists():
        return {}
    rows = {row["name"]: row for row in map(json.loads, log.read_text(encoding="utf-8").splitlines())}
    return {
        p.name: Run(p, *(rows[p.name][name] for name in _LOGGED))
        for p in programs
        if p.name in rows and rows[p.name]["source"] == p.source_hash
    }


def write_log(log: Path, run: Run) -> None:
    row = {"name": run.program.name, "source": run.program.source_hash}
    row |= {name: getattr(run, name) for name in _LOGGED}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def groups(runs: list[Run]) -> dict[tuple[str, bool], list[Run]]:
    """The runs by variant and kinks."""
    found: dict[tuple[str, bool], list[Run]] = {}
    for variant in VARIANTS:
        for kinks in (False, True):
            rows = [r for r in runs if r.program.variant == variant and r.program.kinks == kinks]
            if rows:
                found[variant, kinks] = rows
    return found


def print_table(runs: list[Run]) -> None:
    print(f"{'programs':<20}{'N':>5}{'wrong':>8}{'verified':>10}{'inconclusive':>14}{'passes':>8}{'s':>6}")
    for (variant, kinks), rows in groups(runs).items():
        count = Counter(r.status for r in rows)
        passes = sum(r.forward_passes for r in rows) / len(rows)
        seconds = sum(r.seconds for r in rows) / len(rows)
        weak = len(rows) - count["wrong"] - count["verified"]
        print(
            f"{variant + (', kinks' if kinks else ''):<20}{len(rows):>5}{count['wrong']:>8}"
            f"{count['verified']:>10}{weak:>14}{passes:>8.0f}{seconds:>6.1f}"
        )
    for (variant, kinks), rows in groups(runs).items():
        reasons = Counter(r.reason for r in rows if r.status not in ("wrong", "verified"))
        for reason, number in reasons.most_common():
            print(f"  {variant}{', kinks' if kinks else ''}: {number} × {reason}")


def misses(runs: list[Run]) -> list[str]:
    """The targets that were missed."""
    found = []
    for (variant, kinks), rows in groups(runs).items():
        name = variant + (" with kinks" if kinks else "")
        share = {s: sum(r.status == s for r in rows) / len(rows) for s in ("wrong", "verified")}
        if variant == CORRECT:
            limit = TARGETS["inconclusive with kinks" if kinks else "inconclusive"]
            if share["wrong"] > 0.0:
                found.append(f"{name}: {share['wrong']:.1%} called wrong")
            if 1.0 - share["wrong"] - share["verified"] > limit:
                found.append(f"{name}: more than {limit:.0%} inconclusive")
        else:
            if share["verified"] > 0.0:
                found.append(f"{name}: {share['verified']:.1%} verified")
            if share["wrong"] < TARGETS["wrong found"]:
                found.append(f"{name}: only {share['wrong']:.1%} called wrong")
    return found


if __name__ == "__main__":
    sys.exit(main())
