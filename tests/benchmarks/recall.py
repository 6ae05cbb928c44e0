"""What is found and what is reported by mistake, by rule: ``python tests/benchmarks/recall.py``.

Every program in ``fixtures/`` with a fault has a twin without one. The table counts, for each rule,
the faults that the static pass reports, and the twins about which it says anything above a note;
with ``--probe`` also the faults that the run confirms, and the twins that it finds right. Exits
with 1 if a twin has a confirmed result. Probing takes some seconds a program.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from measuring import script

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
COLUMNS = ("faults", "static", "confirmed", "twins", "reported", "called wrong", "verified")


def report(directory: Path, entry: str, *, probe: bool) -> dict[str, Any]:
    """warplint's own report of one fixture."""
    how = ["--entry", entry] if probe else ["--no-probe"]
    words = [script("warplint"), "check", *how, "--format", "json", "--exit-zero", "."]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{directory.name}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def is_meant(result: dict[str, Any], fixture: dict[str, Any]) -> bool:
    """Whether a result is the one that is expected, at a line where a reviewer would put it."""
    place = result["location"]
    return (
        result["rule"] in (fixture["rule"], *fixture.get("rules", ()))
        and place["file"] == fixture["file"]
        and any(abs(place["line"] - line) <= 2 for line in fixture["lines"])
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", action="store_true", help="run the programs as well")
    options = parser.parse_args()
    fixtures = tomllib.loads((FIXTURES / "expected.toml").read_text())["fixture"]
    table: dict[str, Counter[str]] = {}
    for fixture in fixtures:
        if "lines" not in fixture:
            continue
        row = table.setdefault(fixture["rule"], Counter())
        place = FIXTURES / fixture["directory"]
        row["faults"] += 1
        found = report(place, fixture["entry"], probe=False)["results"]
        row["static"] += any(is_meant(r, fixture) for r in found)
        if options.probe:
            found = report(place, fixture["entry"], probe=True)["results"]
            row["confirmed"] += any(r["verdict"] == "confirmed" and is_meant(r, fixture) for r in found)
        if not fixture.get("twin"):
            continue
        twin = FIXTURES / fixture["twin"]
        row["twins"] += 1
        found = report(twin, fixture["entry"], probe=False)["results"]
        row["reported"] += any(r["verdict"] != "note" for r in found)
        if options.probe:
            told = report(twin, fixture["entry"], probe=True)
            row["called wrong"] += any(r["verdict"] == "confirmed" for r in told["results"])
            row["verified"] += all(p["status"] == "verified" for p in told["programs"])
    print(f"{'rule':<8}" + "".join(f"{column:>14}" for column in COLUMNS))
    total: Counter[str] = Counter()
    for rule in sorted(table):
        print(f"{rule:<8}" + "".join(f"{table[rule][column]:>14}" for column in COLUMNS), flush=True)
        total.update(table[rule])
    print(f"{'all':<8}" + "".join(f"{total[column]:>14}" for column in COLUMNS))
    return 1 if total["called wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
