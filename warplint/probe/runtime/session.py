"""The probe of one program, from an initialised Warp: every run of the program is a fork of this."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import pinning

ENTROPY = pinning.pin_entropy()

import warp  # noqa: E402  (after the entropy source is pinned)

from . import (  # noqa: E402
    devices,
    hooks,
    investigate,
    judge,
    messages,
    program,
    signatures,
    solvers,
    steps,
    synthesised,
    tracker,
)
from .attribute import Attribution, Attributor  # noqa: E402
from .causes import adjoints  # noqa: E402
from .declared import Declared  # noqa: E402
from .forks import ChildFailure, Reporter, run_in_child  # noqa: E402
from .launch_tests import LaunchTests  # noqa: E402
from .loading import LOADING  # noqa: E402
from .measure import SHORTEN, Measured  # noqa: E402
from .met_functions import MetFunctions  # noqa: E402
from .reported import Comparison  # noqa: E402
from .scout import Scout  # noqa: E402
from .shortening import MEMORY_SHARE, Shortening  # noqa: E402
from .sites import Sites  # noqa: E402
from .structure import Structure  # noqa: E402
from .targets import choose  # noqa: E402
from .trunk import Target, Trunk, respawned  # noqa: E402

SCOUT_SHARE = 0.75
"""Share of the time limit after which a program that has not come back is given up."""
LEAST_SECONDS = 8.0
"""Time below which a shortened program is not tried any more."""
SHORT_PASSES = 100.0
"""Passes that should fit into the time that is left when a program is shortened."""
ALL_PASSES = 150.0
"""The same where the difference is also to be localized."""
RESERVE = 0.2
"""Share of the time that is kept from the search for the cause, to localize the difference."""
COMFORTABLE_PASSES = 60.0
"""Passes that the whole program should have time for where more is asked than a verdict."""
UNKNOWN_FACTOR = 16.0
"""How much shorter a program is made whose first backward pass was never reached."""


@dataclass
class Found:
    """What one attempt at a program saw and measured."""

    structure: Structure
    measured: list[Measured]
    uncovered: list[str]
    postponed: bool = False
    """Whether nothing was measured yet, because a shorter program would do."""

    @property
    def too_long(self) -> bool:
        """Whether nothing could be told only because the program takes too long."""
        if self.measured:
            return all(m.problem for m in self.measured) and any(m.too_long for m in self.measured)
        return self.structure.ending in ("stopped", "memory")

    def factor(self, left: float) -> float:
        """How many times shorter a pass has to be for what is asked in the seconds that are left."""
        longest = max((m.child_seconds for m in self.measured), default=0.0)
        if longest <= 0.0:
            return UNKNOWN_FACTOR
        return max(2.0, (ALL_PASSES if self.postponed else SHORT_PASSES) * longest / left)

    def tells_something(self) -> bool:
        """Whether a shortened program still lets the objective depend on its parameters."""
        checks = [check for m in self.measured for _, check in m.checks]
        return any(abs(c.fd) > c.uncertainty for c in checks if math.isfinite(c.fd))


def kept(partial: str) -> Structure | None:
    """What a scout that did not come back had saved, if it saw an iteration."""
    try:
        with open(partial, "rb") as file:
            return pickle.load(file)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def compiling(diary: str) -> str:
    """How much of the time went into compiling kernels, if that was a good part of it."""
    try:
        with open(diary, encoding="utf-8") as file:
            seconds, modules, since = json.load(file)
    except (OSError, ValueError):
        return ""
    if since is not None:
        seconds, modules = seconds + time.monotonic() - since, modules + 1
    if seconds < 10.0:
        return ""
    return (
        f", {seconds:.0f} s of them compiling {modules} kernel module{'s' if modules > 1 else ''}; "
        "compiled ones are kept, so the next run gets further"
    )


class LastLine:
    """Standard error that remembers its last line: what argparse says before it exits."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.text = ""

    def write(self, text: str) -> int:
        if text.strip():
            self.text = text.strip().splitlines()[-1]
        return len(text) if self._stream is None else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Session:
    """Runs the stages for one program and sends what it finds.

    ``spec`` keys: ``program``, ``directory``, ``root`` (paths), ``arguments``, ``seconds``,
    ``device``, ``overrides``, ``objective``, ``requests`` (what static findings ask to have decided).
    """

    def __init__(self, spec: dict[str, Any], send: Callable[[dict[str, Any]], None], started: float) -> None:
        self.spec = spec
        self.send = send
        self.deadline = started + float(spec.get("seconds", 60.0)) - 1.0
        self.started = started
        self.devices = devices.DeviceMap()
        self.forward_passes = 0
        self.unmet: list[str] = []
        """Constants to replace whose module the program does not load."""
        self.respawned = False
        """Whether forks of the program hung, so that it was run from its beginning each time."""

    # -- setting up ----------------------------------------------------------------------

    def prepare(self) -> None:
        if hasattr(warp.config, "log_level") and hasattr(warp, "LOG_WARNING"):
            warp.config.log_level = warp.LOG_WARNING
        else:  # Warp 1.13
            warp.config.quiet = True
        warp.init()
        self.devices.install(self.spec.get("device", "cpu"))
        sites = Sites(self.spec["root"], os.path.dirname(os.path.abspath(warp.__file__)))
        self.stream = hooks.install(sites)
        self.stream.devices = self.devices
        self.shortening = Shortening(self.stream)
        self.stream.inputs.install()
        program.override_constants(self.spec.get("overrides") or {})

    def run_user(self) -> None:
        """Runs the program in this (forked) process; the observer hears how it ended."""
        error: BaseException | None = None
        sys.stderr = self.stream.stderr = LastLine(sys.stderr)
        try:
            program.run(
                self.spec["program"],
                list(self.spec.get("arguments", ())),
                self.spec["directory"],
                self.spec.get("module"),
                self.spec.get("import_root"),
            )
        except BaseException as caught:
            error = caught
        self.stream.observer.finished(error)
        os._exit(0)

    # -- stages --------------------------------------------------------------------------

    def run(self) -> None:
        self.prepare()
        self.send({"type": "started", "warp": warp.config.version, "numpy": np.__version__, "device": "cpu"})
        if "library" in self.spec:
            self.try_library(**self.spec["library"])
            return
        problem = self.take_horizon()
        found = problem if problem is not None else self.attempt()
        given = self.spec.get("horizon") is not None
        if isinstance(found, Found) and found.too_long and not given and self.shorten(found):
            shorter = self.attempt(whole=True)
            if isinstance(shorter, Found) and shorter.tells_something():
                found = shorter
            else:
                self.shortening.undo()
        if isinstance(found, Found) and found.postponed and not self.shortening.literals:
            found = self.attempt(found.structure, whole=True)
        if isinstance(found, str):
            self.send({"type": "blocked", "reason": found})
            return
        structure = found.structure
        self.send({"type": "scouted", "lines": sorted(structure.lines)})
        self.send({"type": "inputs", "files": structure.files, "listings": structure.listings})
        if self.spec.get("investigate"):
            self.send({"type": "explained", **investigate.explained(structure)})
        if not found.measured:
            self.send({"type": "nothing", "reason": self.nothing_to_measure(structure)})
        else:
            found.measured = self.compare_reported(found.measured)
            attributions = self.attribute(found.measured)
            self.test_launches(found.measured)
            self.try_solvers(found.measured)
            if structure.custom_adjoints:
                self.test_functions(found.measured)
            self.report(structure, found.measured, attributions, found.uncovered)
            self.investigate(found.measured)
            if self.spec.get("tracker"):
                self.send({"type": "tracker", **tracker.track(self.stream, self.run_user, self.deadline)})
        self.finish(structure)

    def attempt(self, structure: Structure | str | None = None, *, whole: bool = False) -> Found | str:
        """Scouts and measures the program as it stands, or says why it cannot be run.

        A program that would take long is only looked at, unless the ``whole`` of it is asked for.
        """
        structure = structure if structure is not None else self.scout()
        if isinstance(structure, str):
            return structure
        asked = [(m, f"{m}.{n}") for m, names in (self.spec.get("overrides") or {}).items() for n in names]
        # A module that this program never loads is another program's.
        self.unmet = sorted(name for module, name in asked if module not in structure.met)
        missing = sorted({name for _, name in asked} - structure.overridden - set(self.unmet))
        if missing and structure.error is None:
            return f"--set {missing[0]}: the program assigns no such module-level constant"
        self.stream.running, self.stream.lagging = structure.running, structure.lagging
        iteration = self.spec.get("iteration")
        targets, uncovered = choose(structure, self.spec.get("parameters") or (), iteration)
        if self.spec.get("parameters") and not targets and structure.episodes:
            names = ", ".join(sorted({e.label for e in structure.episodes if e.leaf and e.reads}))
            return f"probe.parameters: the program has no such parameter; it has {names}"
        if iteration is not None and not targets and any(e.leaf and e.reads for e in structure.episodes):
            return f"--iteration {iteration}: it was not reached; {'; '.join(uncovered)}"
        seconds = structure.pass_seconds
        left = self.deadline - time.monotonic()
        if self.spec.get("investigate") and not whole and COMFORTABLE_PASSES * seconds > left:
            postponed = [
                Measured(
                    e, n, problem=f"one pass takes {seconds:.1f} s", too_long=True, child_seconds=seconds
                )
                for e, n, _ in targets
            ]
            return Found(structure, postponed, uncovered, postponed=True)
        return Found(structure, self.measure(targets, structure.seconds) if targets else [], uncovered)

    # -- a program that is too long ------------------------------------------------------

    def shorten(self, found: Found) -> bool:
        """Replaces the numbers that bound the loops around the taped launches, if there are any."""
        left, structure = self.deadline - time.monotonic(), found.structure
        if left < LEAST_SECONDS:
            return False
        if structure.kept is not None:
            limit = float(self.spec.get("memory") or 0)
            self.send(self.shortening.to_memory(structure, structure.kept, limit))
            return bool(self.shortening.literals)
        return self.shortening.by_factor(structure, found.factor(left))

    def take_horizon(self) -> str | None:
        """Makes the program take as many steps as was asked for; says why if that cannot be done."""
        steps = self.spec.get("horizon")
        if steps is None:
            return None
        structure = self.scout()
        return structure if isinstance(structure, str) else self.shortening.to_steps(structure, steps)

    def finish(self, structure: Structure) -> None:
        substitutions = []
        if structure.cuda_on_cpu:
            substitutions.append("cuda devices mapped to cpu")
        for name, values in (self.spec.get("overrides") or {}).items():
            given = [(f"{name}.{key}", value) for key, value in values.items()]
            substitutions.extend(f"{full} = {value}" for full, value in given if full not in self.unmet)
        substitutions.extend(literal.text for literal in self.shortening.literals)
        if self.respawned:
            substitutions.append("run from its beginning for every evaluation: forks of it hang")
        self.send(
            {
                "type": "finished",
                "forward_passes": self.forward_passes,
                "substitutions": substitutions,
                "unmet": self.unmet,
            }
        )

    def scout(self) -> Structure | str:
        self.send({"type": "progress", "stage": "scout", "done": 0, "total": 1})
        left = self.deadline - time.monotonic()
        partial = os.path.join(tempfile.gettempdir(), f"warplint-scout-{os.getpid()}")

        def work(reporter: Reporter) -> None:
            LOADING.diary = partial + ".loading"
            self.stream.observer = Scout(
                self.stream,
                reporter,
                seconds=max(2.0, (0.1 if self.spec.get("investigate") else 0.25) * left),
                partial=partial,
                episodes=max(4, (self.spec.get("iteration") or 0) + 1),
                memory=MEMORY_SHARE * float(self.spec.get("memory") or "inf"),
            )
            self.run_user()

        self.forward_passes += 1
        try:
            structure = run_in_child(work, time.monotonic() + SCOUT_SHARE * left)
        except ChildFailure as failure:
            structure = kept(partial)
            if structure is None:
                return self.explain(failure, partial + ".loading")
            how = "did not come to an end" if failure.hung else f"was {failure.reason}"
            structure.error = f"the program {how} after these iterations"
        finally:
            for leftover in (partial, partial + ".loading"):
                with contextlib.suppress(OSError):
                    os.unlink(leftover)
        if isinstance(structure, dict):
            return str(structure["error"])
        return structure

    def explain(self, failure: ChildFailure, diary: str) -> str:
        if failure.hung:
            limit = f"timed out after {self.spec.get('seconds', 60):g} s before an iteration was complete"
            return limit + compiling(diary)
        killed = failure.reason.startswith("killed")
        return f"the program {'was ' if killed else ''}{failure.reason}"

    def nothing_to_measure(self, structure: Structure) -> str:
        if structure.ending == "fault":
            return f"blocked: {structure.error}"
        if structure.error is not None:
            return (
                f"blocked: the program raised {structure.error}"
                if structure.ending == "raised"
                else (f"blocked: the program {structure.error}")
            )
        if structure.graph_replays:
            return "blocked: graph-replay, the work runs inside a captured graph where nothing can be seen"
        if structure.ending == "memory":
            return (
                f"blocked: the backward pass does not fit into the memory that a measurement has; {SHORTEN}"
            )
        if structure.backwards == 0:
            if structure.ending == "stopped":
                seen = f"the first {structure.seconds:.0f} s ({structure.events} operations)"
                return f"not-reached: the program ran no backward pass within {seen}; {SHORTEN}"
            return "not-reached: the program ran no backward pass"
        if structure.gradient_reads == 0:
            within = ""
            if structure.ending == "stopped":
                within = f" within the first {structure.seconds:.0f} s; {SHORTEN}"
            return f"not-reached: no gradient was read after the backward pass{within}"
        return "not-reached: every gradient that was read belongs to an array computed on the tape"

    def measure(self, targets: list[Target], usual: float) -> list[Measured]:
        """Measures in forks of one run; where these hang, in runs from the beginning."""

        def progress(done: int, total: int) -> None:
            self.send({"type": "progress", "stage": "measure", "done": done, "total": total})

        def work(reporter: Reporter) -> None:
            self.stream.observer = Trunk(
                self.stream, reporter, targets, self.deadline - 2.0, progress, usual=usual
            )
            self.run_user()

        self.forward_passes += 1
        progress(0, len(targets))
        try:
            measured = run_in_child(work, self.deadline)
        except ChildFailure as failure:
            measured = []
            reason = failure.reason
        else:
            reason = "did not reach it again"
            if isinstance(measured, dict):
                reason, measured = measured["error"], []
        self.forward_passes += sum(m.forward_passes for m in measured)
        if any(m.hung for m in measured):
            measured = respawned(self.stream, self.run_user, targets, self.deadline - 2.0, progress)
            self.forward_passes += sum(m.forward_passes for m in measured)
            self.respawned = True
        found = {(m.episode.start, m.episode.serial) for m in measured}
        for episode, iteration, _ in targets:
            if (episode.start, episode.serial) not in found:
                late = time.monotonic() > self.deadline - 2.5
                # A run that gave up what takes too long did so for the rest as well.
                gave_up = next((m.problem for m in measured if m.too_long), None)
                problem = gave_up or ("the time limit was reached" if late else f"the measuring run {reason}")
                measured.append(Measured(episode, iteration, problem=problem))
        return measured

    # -- attribution ---------------------------------------------------------------------

    def compare_reported(self, measured: list[Measured]) -> list[Measured]:
        """Where all gradients are right: are they those of what the program reports?

        Or of the number that the user named as the objective, whatever else was found.
        """
        if self.spec.get("objective"):
            name, limit = str(self.spec["objective"]), self.deadline - 1.0
            declared = [Declared(self.stream, self.run_user, m, limit, name) for m in measured]
            again = [one.measure() for one in declared]
            self.forward_passes += sum(one.runs for one in declared)
            return again
        if any(m.outcome == judge.DIFFERS for m in measured):
            return measured
        for position, m in enumerate(measured):
            seeded = any(b.kind == "seeds" for b in m.episode.backwards)
            if m.iteration == 1 and seeded and m.outcome == judge.AGREES:
                comparison = Comparison(self.stream, self.run_user, m, self.deadline - 1.0)
                other = comparison.compare()
                self.forward_passes += comparison.runs
                if other is not None:
                    # What later iterations show of the seeded sum is beside the point.
                    rest = [o for o in measured[position + 1 :] if not _same_parameter(o, m)]
                    return [*measured[:position], other, *rest]
        return measured

    def attribute(self, measured: list[Measured]) -> list[tuple[Measured, Attribution]]:
        wrong = [m for m in measured if m.outcome == judge.DIFFERS]
        if wrong:
            # One search per parameter, at its earliest wrong iteration: the shortest prefix.
            subjects: list[Measured] = []
            for m in sorted(wrong, key=lambda m: m.iteration):
                if not any(_same_parameter(s, m) for s in subjects):
                    subjects.append(m)
            subjects = subjects[:4]
        elif self.spec.get("requests"):
            subjects = [m for m in measured if m.problem is None and m.gradient is not None][-1:]
        else:
            return []
        found = []
        for number, subject in enumerate(subjects):
            self.send({"type": "progress", "stage": "attribute", "done": number, "total": len(subjects)})
            first = self.search(subject, measured)
            found.append((subject, first))
            # What an iteration adds to the faults of the first (gradients that are never zeroed).
            later = [m for m in wrong if _same_parameter(m, subject) and m.iteration > subject.iteration]
            if first.resolved and later:
                known = frozenset(c["key"] for c in first.confirmed)
                further = self.search(later[0], measured, known)
                if further.resolved and {c["key"] for c in further.confirmed} - known:
                    found.append((later[0], further))
        return found

    def search(
        self, subject: Measured, measured: list[Measured], known: frozenset = frozenset()
    ) -> Attribution:
        localized = self.spec.get("investigate") and subject.reported is None
        kept = RESERVE * (self.deadline - self.started) if localized else 0.0
        rows = messages.episodes([m for m in measured if _same_parameter(m, subject)])
        attributor = Attributor(
            self.stream,
            self.run_user,
            subject,
            self.deadline - 1.0 - kept,
            self.pointed_at,
            measured,
            known,
            likely=signatures.kinds(signatures.signature(rows)),
        )
        found = attributor.search()
        adjoints.remember(found.causes)
        self.forward_passes += attributor.result.runs
        return found

    def test_launches(self, measured: list[Measured]) -> None:
        """Where no gradient was measured to be wrong: is a kernel wrong by itself?

        Asked if a static finding points at a kernel's own adjoint, if finite differences could not see
        the objective, or if it has a corner along some direction.
        """
        asked = any(r["counterfactual"] == "adjoint" for r in self.spec.get("requests", ()))
        unseen = [m for m in measured if m.outcome.startswith("inconclusive") and m.gradient is not None]
        known = [m for m in measured if m.gradient is not None]
        corners = [m for m in known if any("kink" in check.outcome for _, check in m.checks)]
        if any(m.outcome == judge.DIFFERS for m in measured) or not known:
            return
        if not (asked or unseen or corners):
            return
        episode = (unseen or corners or known)[-1].episode

        def work(reporter: Reporter) -> None:
            self.stream.observer = LaunchTests(self.stream, reporter, episode)
            self.run_user()

        self.forward_passes += 1
        try:
            rows = run_in_child(work, self.deadline - 1.0)
        except ChildFailure:
            return
        if isinstance(rows, list):
            self.send({"type": "launch-tests", "kernels": [messages.cause(row) for row in rows]})

    def test_functions(self, measured: list[Measured]) -> None:
        """Where no gradient was measured to be wrong: are custom adjoints wrong elsewhere?"""
        known = [m for m in measured if m.gradient is not None]
        if any(m.outcome == judge.DIFFERS for m in measured) or not known:
            return

        def work(reporter: Reporter) -> None:
            self.stream.observer = MetFunctions(self.stream, reporter, known[-1].episode)
            self.run_user()

        self.forward_passes += 1
        with contextlib.suppress(ChildFailure):
            rows = run_in_child(work, self.deadline - 1.0)
            if isinstance(rows, list):
                self.send({"type": "function-tests", "functions": rows})

    def try_library(self, kernels: list[str], functions: bool) -> None:
        """No program: kernels of this file and its custom adjoints, on made-up arguments."""
        library = synthesised.Synthesised(
            self.stream, self.send, self.deadline - 1.0, os.path.realpath(self.spec["program"])
        )
        reason = library.run(kernels, functions=functions)
        if reason is not None:
            self.send({"type": "blocked", "reason": reason})
        self.send({"type": "finished", "forward_passes": 0, "substitutions": []})

    def try_solvers(self, measured: list[Measured]) -> None:
        """Whether solvers that findings point at have come to an end, at the first iteration."""
        asked = [r for r in self.spec.get("requests", ()) if r["counterfactual"] == "unconverged-solver"]
        known = [m for m in measured if m.problem is None and m.gradient is not None]
        rows = []
        for request in asked if known else ():
            row = solvers.try_more(
                self.stream, self.run_user, known[0], request["sites"], self.deadline - 1.0
            )
            if row is not None:
                self.forward_passes += len(row["objectives"])
                rows.append({**row, "sites": request["sites"]})
        if rows:
            self.send({"type": "solvers", "rows": rows})

    def follow(self, measured: list[Measured]) -> dict[str, Any] | None:
        """Where all gradients are right: what the optimizer's first step does to the objective."""
        if any(m.outcome != judge.AGREES for m in measured):
            return None
        return steps.follow(self.stream, self.run_user, measured, self.deadline - 1.0)

    def investigate(self, measured: list[Measured]) -> None:
        """For `warplint verify`: where autodiff and finite differences part, and what training does."""
        if not self.spec.get("investigate"):
            return
        self.send({"type": "progress", "stage": "locate", "done": 0, "total": 1})
        limit = self.deadline - 1.0
        found, runs = investigate.localized(self.stream, self.run_user, measured, limit)
        self.forward_passes += runs
        if found is not None:
            self.send({"type": "localized", **found})
        course = investigate.course_of(self.stream, self.run_user, measured, limit)
        if course is not None:
            self.send({"type": "course", **course})

    def pointed_at(self, cause: dict[str, Any]) -> bool:
        """Whether a static finding points at this cause."""
        return any(request_matches(request, cause) for request in self.spec.get("requests", ()))

    # -- the report ----------------------------------------------------------------------

    def report(
        self,
        structure: Structure,
        measured: list[Measured],
        attributions: list[tuple[Measured, Attribution]],
        uncovered: list[str],
    ) -> None:
        self.send(
            {
                "type": "measured",
                "structure": {
                    "ending": structure.ending,
                    "error": structure.error,
                    "events": structure.events,
                    "tapes": structure.tapes,
                    "backwards": structure.backwards,
                },
                "uncovered": uncovered,
                "shortened": [dataclasses.asdict(literal) for literal in self.shortening.literals],
                "episodes": messages.episodes(measured),
                "step": self.follow(measured),
            }
        )
        for subject, attribution in attributions:
            self.send({"type": "attribution", **messages.attribution(subject, attribution)})


def _same_parameter(a: Measured, b: Measured) -> bool:
    return a.episode.variable == b.episode.variable and a.episode.family == b.episode.family


def request_matches(request: dict[str, Any], cause: dict[str, Any]) -> bool:
    """Whether a static finding's probe request is about this cause of the run."""
    if cause["key"][0] != request["counterfactual"]:
        return False
    stack = [tuple(f[:2]) for f in cause["stack"]]
    for file, first, last in request.get("sites", ()):
        if any(f == file and first <= line <= last for f, line in stack):
            if request.get("kernel") and cause.get("kernel") and request["kernel"] != cause["kernel"]:
                continue
            return True
    if request.get("kernel") and not request.get("sites"):
        return cause.get("kernel") == request["kernel"] and (
            not request.get("kernel_file") or cause.get("kernel_file") == request["kernel_file"]
        )
    return False
