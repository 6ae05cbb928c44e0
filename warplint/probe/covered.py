"""What a verdict covers, under which conditions, and what it leaves open, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warplint.probe import progress
from warplint.probe.facts import Facts, Paths
from warplint.probe.records import Records, Rows


def conditions(parameters: list[Rows], facts: Facts, paths: Paths) -> str:
    """All that a reader has to know beside "the gradient is right", as clauses."""
    return (
        independent(parameters, paths)
        + seeds_taken_as_given(parameters)
        + held_constant(parameters, paths)
        + progress.too_long_a_step(facts.step)
        + "".join(f"; {text}" for text in [not_measured(parameters)] if text)
        + shortened(facts)
        + how_it_ended(facts)
    )


def independent(parameters: list[Rows], paths: Paths) -> str:
    """Zero that is right, since the objective does not move at all, may still not be what is wanted."""
    places = []
    for rows in parameters:
        checks = [c for r in rows for c in r["checks"]]
        if checks and all(c["ad"] == 0.0 and c["fd"] == 0.0 for c in checks):
            places.append([*rows[0]["place"], rows[0]["parameter"]])
    if not places:
        return ""
    names = " and ".join(_named(places, paths))
    return (
        f"; it is zero, as the objective does not depend on {names} at all here: if it should, "
        "look for a result that is never used or a branch that is never taken"
    )


def seeds_taken_as_given(parameters: list[Rows]) -> str:
    """What a verdict on seeded outputs does not say."""
    if all(r["objective_kind"] == "loss" for rows in parameters for r in rows):
        return ""
    return "; the seeds of the backward pass were taken as given"


def held_constant(parameters: list[Rows], paths: Paths) -> str:
    places = [place for rows in parameters for row in rows for place in row["constant"]]
    return f"; {constants(places, paths)} held constant, as the code means it" if places else ""


def constants(places: Iterable[list[Any]], paths: Paths) -> str:
    """`x` (file:1) and `y` (file:2) are"""
    named = _named(places, paths)
    return " and ".join(named) + (" are" if len(named) > 1 else " is")


def _named(places: Iterable[list[Any]], paths: Paths) -> list[str]:
    """`x` (file:1), each once; a place is (file, line, name)."""
    return list(dict.fromkeys(f"`{name}` ({paths.display(str(file))}:{line})" for file, line, name in places))


def not_measured(parameters: list[Rows]) -> str | None:
    """Iterations that were tried and could not be measured: the verdict does not cover them."""
    found = {
        row["iteration"]: row["outcome"].removeprefix("inconclusive: ")
        for rows in parameters
        for row in rows
        if row["outcome"].startswith("inconclusive")
    }
    missing = [f"iteration {n} could not be measured ({why})" for n, why in sorted(found.items())]
    return "; ".join(missing) or None


def shortened(facts: Facts) -> str:
    """A verdict on a shorter program says so."""
    numbers = [f"{s['name']} = {s['shorter']:g} instead of {s['value']:g}" for s in facts.shortened]
    return f"; measured on a shortened horizon, {' and '.join(numbers)}" if numbers else ""


def how_it_ended(facts: Facts) -> str:
    """A program that fails after the measured iterations is worth a word."""
    error = facts.structure.get("error")
    if not error:
        return ""
    raised = facts.structure.get("ending") == "raised"
    return f"; the program raised {error} later on" if raised else f"; {error}"


def iterations(parameters: list[Rows]) -> str:
    """iteration 1, iterations 1 and 2"""
    numbers = sorted({r["iteration"] for rows in parameters for r in rows if r["outcome"] == "agrees"})
    *most, last = map(str, numbers)
    listed = f"{', '.join(most)} and {last}" if most else last
    return f"iteration{'s' if most else ''} {listed}"


def lines(parameters: list[Rows], records: Records) -> tuple[str, ...]:
    """Parameter by parameter: where it was measured, and along what."""
    found = []
    for rows in parameters:
        good = sorted({r["iteration"] for r in rows if r["outcome"] == "agrees"})
        names = sorted({c["direction"] for r in rows for c in r["checks"] if c["outcome"] == "agrees"})
        where = ", ".join(map(str, good))
        found.append(f"{records.parameter_label(rows[0])}: iterations {where}; {', '.join(names)}")
    return (*found, *(f"not covered: {text}" for text in records.facts.uncovered))
