"""Values that pass through host code between the parameter and the objective."""

from __future__ import annotations

from typing import Any

from .. import arrays, judge
from ..episodes import GradientChild, ObjectiveChild
from ..forks import Reporter
from ..held import HostReads
from ..hooks import Observer
from .base import CounterfactualRun, Kind


class HostRead(Kind):
    """What the host reads of an array goes on as a constant: autodiff knows nothing of that path.

    It cannot be given back to autodiff, but measured: the finite difference with the selected
    reads held constant lacks exactly what autodiff lacks for them.
    """

    NAME = "host-read"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.missing: dict[str, float] = {}
        """Per direction: finite difference with the reads held minus the one without."""

    def measure(self, parameter: Any) -> None:
        selected = {key[1:3] for key in self.run.removed if key[0] == self.NAME}
        measured = self.run.measured
        if not selected or parameter is None:
            return
        base = self.run.spawn(
            lambda reporter: GradientChild(self.run.episode, parameter, reporter, host_reads=HostReads())
        )
        reads = base["host_reads"]
        reads.places = selected
        memory = arrays.memory(parameter)

        def at(vector: Any, t: float) -> float:
            def make(reporter: Reporter) -> Observer:
                memory[...] = (measured.start + t * vector).astype(memory.dtype)
                return ObjectiveChild(
                    self.run.episode, parameter, reporter, base["seeds"], base["included"], host_reads=reads
                )

            return float(self.run.spawn(make)["objective"])

        for name, check in measured.checks:
            if check.outcome in (judge.DIFFERS, judge.AGREES, judge.MEASURED):
                vector, h = measured.vectors[name], check.step
                held = (at(vector, h) - at(vector, -h)) / (2.0 * h)
                self.missing[name] = held - check.fd

    def found(self) -> list[dict[str, Any]]:
        return [
            {
                "key": (self.NAME, *read["place"]),
                "stack": read["stack"],
                "name": self.stream.sites.label(read["stack"][:1]),
                "array": self.stream.sites.label(read["array"]),
                "born": read["array"],
                "lagging": tuple(read["place"]) in self.stream.lagging,
                "backwards": read["backwards"],
                "passed": read["passed"] if self.is_carried(read) else None,
            }
            for read in self.run.measured.host_reads
        ]

    def is_carried(self, read: dict[str, Any]) -> bool:
        """Whether what was read is the state that one window hands to the next, after its own
        backward pass: a matter of the horizon, whichever way it is handed on."""
        return read["backwards"] > 0 and tuple(read["array"]) != tuple(self.run.episode.family[0])

    def corrections(self) -> dict[str, float]:
        return self.missing
