"""What was measured, as the records that a verdict carries: checks, places, what measures it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warplint.model import Check, Evidence, Finding, Location, Program, Removal
from warplint.probe.facts import Facts, Paths
from warplint.probe.names import ParameterNames
from warplint.probe.rows import single
from warplint.probe.signature import signature, suspects

Rows = list[dict[str, Any]]


class Records:
    """The facts of one run in the words of the report."""

    def __init__(self, program: Program, findings: Sequence[Finding], facts: Facts, paths: Paths) -> None:
        self.program = program
        self.findings = findings
        self.facts = facts
        self.paths = paths
        self.names = ParameterNames(facts.episodes, paths.display)

    def evidence(
        self,
        rows: Rows,
        *,
        removal: Removal | None = None,
        covered: tuple[str, ...] = (),
        ruled_out: tuple[str, ...] = (),
    ) -> Evidence:
        checks = tuple(
            Check(
                direction=c["direction"] if single(rows) else f"{self.names.plain(r)}: {c['direction']}",
                ad=c["ad"],
                fd=c["fd"],
                noise=c["noise"],
                relative_error=c["relative_error"],
                outcome=c["outcome"],
                step=c["step"],
                iteration=r["iteration"],
            )
            for r in sorted(rows, key=lambda r: r["iteration"])
            for c in r["checks"]
        )
        first = rows[0]
        calls = max(r["backward_calls"] for r in rows)
        objective = first["objective"] or (
            "seeded outputs" if first["objective_kind"] == "seeds" else "seeded adjoint launch"
        )
        return Evidence(
            warp=self.facts.warp or "",
            device=self.facts.device or "cpu",
            parameter=", ".join(dict.fromkeys(self.parameter_label(r) for r in rows)),
            objective=f"{self.objective_label(objective)}, {calls} backward call{'s' if calls != 1 else ''}",
            checks=checks,
            signature=signature(rows),
            forward_passes=self.facts.forward_passes,
            counterfactual=removal,
            covered=covered,
            ruled_out=ruled_out,
            suspects=self.suspects(rows),
            tracker=self.tracker(),
        )

    def suspects(self, rows: Rows) -> tuple[str, ...]:
        """Rules in the order in which the search for a cause tried them; none where nothing is wrong."""
        if not any(r["outcome"] == "differs" for r in rows):
            return ()
        found = [f.rule for f in self.findings if not f.is_note and self.was_reached(f)]
        return suspects(signature(rows), found)

    def tracker(self) -> tuple[str, ...]:
        """The warnings of Warp's overwrite tracker in words, and whether it came to an end."""
        lines = []
        for w in self.facts.tracker:
            by = f"argument `{w['argument']}` of `{w['kernel']}`" if w["kernel"] else f"by {w['operation']}()"
            times = f", {w['count']} times" if w["count"] > 1 else ""
            lines.append(
                f"{by} written after it was read ({self.paths.display(w['file'])}:{w['line']}{times})"
            )
        if self.facts.tracker_problem:
            lines.append(f"did not come to an end: {self.facts.tracker_problem}")
        return tuple(lines)

    def parameter_label(self, row: dict[str, Any]) -> str:
        file, line = row["place"]
        return f"{row['parameter']} ({self.paths.display(file)}:{line})"

    def objective_label(self, text: str) -> str:
        """The runtime names a loss as ``name (file:line)``; the file becomes a display path."""
        name, bracket, place = text.rpartition(" (")
        if not bracket:
            return text
        file, _, line = place.rstrip(")").rpartition(":")
        return f"{name} ({self.paths.display(file)}:{line})"

    def backward(self, rows: Rows) -> Location:
        """The innermost backward call inside the checked tree."""
        for row in rows:
            frames = self.paths.frames(row["backward"])
            inside = [f for f in frames if f[0] in self.program.closure or f[0] == self.program.file]
            for file, line in inside or frames:
                return Location(file, line)
        return Location(self.program.file, 1)

    def was_reached(self, finding: Finding) -> bool:
        request = finding.request
        if request is None or not request.sites:
            return True
        lines = {(self.paths.display(f), n) for f, n in self.facts.executed}
        return any(site.covers(file, line) for site in request.sites for file, line in lines)

    def replay(self, rows: Rows, attribution: dict[str, Any] | None) -> dict[str, Any]:
        """What an evidence script measures again."""
        removed = [c["key_parts"] for c in attribution["confirmed"]] if attribution else []
        iteration = attribution["iteration"] if attribution else None
        return {
            "episodes": [r["replay"] for r in rows],
            "removed": removed,
            "iteration": iteration,
            "shortened": self.facts.shortened,
        }
