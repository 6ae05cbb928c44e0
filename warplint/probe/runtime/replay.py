"""Prints the numbers of an evidence script again: the same episodes, directions and steps.

Reads its order as JSON on standard input. Exit status 0 when everything was measured again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def replay(spec: dict[str, Any]) -> int:
    from . import horizon, program, session
    from .causes import KINDS, CounterfactualRun
    from .causes.base import projected
    from .forks import Reporter, run_in_child
    from .measure import Measured
    from .structure import Episode, Read
    from .trunk import Trunk

    probe = session.Session(spec, lambda message: None, time.monotonic())
    probe.prepare()
    for given in spec.get("shortened", ()):
        path = os.path.realpath(probe.stream.sites.path(given["file"]))
        program.LITERALS.setdefault(path, []).append(horizon.Literal(**given))
    stream = probe.stream
    targets = []
    fixed = {}
    for row in spec["episodes"]:
        given = row["episode"]
        reads = [Read(_tuples(r[0]), r[1], r[2], r[3]) for r in given["reads"]]
        episode = Episode(
            family=_tuples(given["family"]),
            serial=_tuples(given["serial"]),
            start=_tuples(given["start"]),
            start_total=given["start_total"],
            leaf=given.get("leaf", True),
            label=given["label"],
            place=_tuples(given["place"]),
            shape=_tuples(given["shape"]),
            dtype=given["dtype"],
            reads=reads,
            next_start=_tuples(given["next_start"]),
            next_serial=_tuples(given["next_serial"]),
            rewritten=bool(given.get("rewritten")),
            resumed=_tuples(given.get("resumed")),
        )
        targets.append((episode, row["iteration"], False))
        fixed[(episode.start, episode.serial)] = [tuple(step) for step in row["steps"]]

    def measure(reporter: Reporter) -> None:
        stream.observer = Trunk(stream, reporter, targets, probe.deadline, lambda done, total: None, fixed)
        probe.run_user()

    measured: list[Measured] = run_in_child(measure, probe.deadline)
    if isinstance(measured, dict):
        print(f"the program could not be measured again: {measured['error']}")
        return 1
    removed = [_tuples(key) for key in spec["removed"]]
    head = ("parameter", "iteration", "direction", "autodiff", "finite diff.", "error")
    print("{:24} {:>9}  {:28} {:>13} {:>13} {:>9}".format(*head))
    for m in measured:
        if m.problem:
            print(f"{m.episode.label:24} {m.iteration:9d}  {m.problem}")
            continue
        for name, check in m.checks:
            print(_row(m, name, check.ad, check.fd, check.relative_error))
    if not any(m.checks for m in measured):
        return 1
    if not removed:
        return 0
    subject = next(m for m in measured if m.iteration == spec["iteration"])
    pinned: dict[tuple, list] = {}
    for m in measured:
        if m.iteration == subject.iteration:
            pinned.setdefault(m.episode.start, []).append((m.episode, m.start))

    def counterfactual(reporter: Reporter) -> None:
        stream.observer = CounterfactualRun(
            stream, reporter, subject, frozenset(removed), pinned, KINDS, probe.deadline
        )
        probe.run_user()

    report = run_in_child(counterfactual, probe.deadline)
    print("with the cause taken away:")
    from .judge import relative_error

    for name, check in subject.checks:
        ad = projected(report, name, subject.vectors[name])
        print(_row(subject, name, ad, check.fd, relative_error(ad, check.fd, check.uncertainty)))
    return 0


def _row(m: Any, name: str, ad: float, fd: float, error: float) -> str:
    return f"{m.episode.label:24} {m.iteration:9d}  {name:28} {ad:13.6g} {fd:13.6g} {100.0 * error:8.3g}%"


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


if __name__ == "__main__":
    order = json.load(sys.stdin)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # no input for the program
    # The kernels that the probe compiled: the numbers come sooner, and from the same machine code.
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "warplint")
    if os.path.isdir(os.path.join(cache, "warp-kernels")):
        os.environ.setdefault("WARP_CACHE_PATH", os.path.join(cache, "warp-kernels"))
    import bootstrap  # type: ignore[import-not-found]  # a sibling, found by path

    status = bootstrap.load("replay").replay(order)
    sys.stdout.flush()
    os._exit(status)
