"""Where on the tape autodiff and finite differences part.

At every place of a tape the derivative of the objective is an inner product of two things: the
adjoints that the backward pass holds when it has come back to this place, and the way the arrays
move there when the parameter moves (their tangents: the difference of two displaced runs). If all
adjoints on the way from the loss are right, this product is the finite difference itself, at every
place. The first place, coming from the loss, where it is another number lies just before the
operation whose adjoint is at fault. It is found by bisection: a few places a round, three runs of the
program each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import judge
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Stream
from .measure import Measured
from .places import END, Look, Shifted

PLACES = 24
"""Places looked at in one round."""
SHARE = 0.005
"""Part of the whole difference by which a place must be off to have parted."""
ROUNDING = 6.0
"""Standard deviations of rounding that a place must be off by."""
NAMED = 0.05
"""Part of the difference that an array must make up to be named."""
AGREES, PARTED, UNKNOWN = "agrees", "differs", "inconclusive"


@dataclass
class Cut:
    """A place of the tape: before the operation at ``position``, or behind all of them."""

    position: Any
    ad: float
    noise: float
    outcome: str
    parts: dict[int, float]
    """What each array adds, by number."""


class Locator:
    """Looks for the place at one measured episode, along the direction that shows most."""

    def __init__(
        self,
        stream: Stream,
        run_user: Callable[[], None],
        measured: Measured,
        together: list[Measured],
        deadline: float,
    ) -> None:
        self.stream = stream
        self.run_user = run_user
        self.measured = measured
        self.deadline = deadline
        self.runs = 0
        self.pinned: dict[tuple, list] = {}
        for other in together:
            if other.start is not None and other.iteration == measured.iteration:
                self.pinned.setdefault(other.episode.start, []).append((other.episode, other.start))
        self.name, self.check = _sharpest(measured)
        self.vector = measured.vectors[self.name]
        self.gap = abs(self.check.ad - self.check.fd)
        if not np.isfinite(self.gap):
            self.gap = abs(self.check.fd)
        self.cuts: dict[Any, Cut] = {}
        self.unvisited: set[int] = set()
        """Launches that the backward pass did not come to."""
        self.fd = self.check.fd
        """The finite difference of the term that the looked at backward call goes back from."""

    def locate(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "parameter": self.measured.episode.label,
            "place": list(self.measured.episode.place),
            "iteration": self.measured.iteration,
            "direction": self.name,
            "ad": self.check.ad,
            "fd": self.check.fd,
            "noise": self.check.uncertainty,
            "calls": [],
            "cuts": [],
            "operations": [],
            "arrays": [],
            "kind": None,
            "problem": None,
        }
        try:
            self._locate(found)
        except ChildFailure as failure:
            found["problem"] = "the time limit was reached" if failure.hung else failure.reason
        except TimeoutError:
            found["problem"] = "the time limit was reached"
        return found

    def _locate(self, found: dict[str, Any]) -> None:
        if any(b.kind == "adjoint" for b in self.measured.episode.backwards):
            found["problem"] = "adjoints are launched by hand, so there is no tape to go back over"
            return
        self.look = look = self.run(lambda reporter: Look(self.stream, reporter, self.measured, self.pinned))
        if look.get("gradient") is None or not look.get("extra"):
            found["problem"] = "the gradient was not reached again in a run from the start"
            return
        self.facts = look["extra"]
        self.included = look["included"]
        calls = self.compare_calls()
        found["calls"] = calls
        wrong = [c for c in calls if c["outcome"] == PARTED]
        if not wrong:
            found["kind"] = "after"
            return
        call = self.call = wrong[0]["number"]
        self.fd = wrong[0]["fd"]
        tape = self.facts["calls"][call]
        self.ops = tape["ops"]
        found.update(call=call + 1, launches=sum(op["kind"] == "launch" for op in self.ops.values()))
        self.number_steps(found)
        bad, good = self.bisect()
        found["cuts"] = [self.row(self.cuts[p]) for p in sorted(self.cuts, key=_backwards)]
        if bad is None:
            found["kind"] = "start" if self.cuts else None
            first = min((p for p in self.cuts if p != END), default=None)
            if first is None:
                found["problem"] = "no launch of the episode is on the tape"
            elif any(p < first for p in self.unvisited):
                launches = [p for p, op in self.ops.items() if p < first and op["kind"] == "launch"]
                found["kind"] = "skipped"
                found["operations"] = [self.operation(max(launches))]
            else:
                found["arrays"] = self.carried(self.cuts[first])
                found["earlier"] = tape["earlier"]
        elif bad == END:
            found["kind"] = "seed"
            found["arrays"] = self.carried(self.cuts[END])
        else:
            found["kind"] = "launch"
            self.inspect(found, bad, good)

    # -- backward calls ------------------------------------------------------------------

    def compare_calls(self) -> list[dict[str, Any]]:
        """Each backward call by itself: what it added to the gradient, and its term's difference."""
        high, low = self.displaced([], None)
        rows: list[dict[str, Any]] = []
        if min(len(high["values"]), len(low["values"])) < len(self.included):
            raise ChildFailure("a displaced run did not reach the objective")
        step = self.check.step
        for number, call in enumerate(self.facts["calls"]):
            if number >= len(self.included) or not self.included[number]:
                continue
            fd = (high["values"][number] - low["values"][number]) / (2.0 * step)
            ad = float(np.sum(np.reshape(call["gained"], self.vector.shape) * self.vector))
            apart = not abs(ad - fd) <= max(2.0 * self.check.uncertainty, SHARE * self.gap)
            rows.append(
                {
                    "number": number,
                    "stack": call["stack"],
                    "ad": ad,
                    "fd": fd,
                    "left": float(np.sum(np.reshape(call["before"], self.vector.shape) * self.vector)),
                    "outcome": PARTED if apart else AGREES,
                }
            )
        return rows

    # -- places on a tape ----------------------------------------------------------------

    def bisect(self) -> tuple[Any, Any]:
        """The first place from the loss backwards that has parted, and the last that had not."""
        launches = [p for p, op in sorted(self.ops.items()) if op["kind"] == "launch"]
        if not launches:
            return None, None
        self.evaluate([END, *_spread(launches, PLACES)])
        while True:
            bad, good = self.parted()
            if bad is None or bad == END:
                return bad, good
            between = [p for p in launches if p > bad and (good == END or p < good) and p not in self.cuts]
            if not between:
                return bad, good
            before = len(self.cuts)
            try:
                self.evaluate(_spread(between, PLACES))
            except TimeoutError:
                return bad, good  # that much is known
            except ChildFailure as failure:
                if failure.hung:
                    return bad, good
                raise
            if len(self.cuts) == before:
                return bad, good

    def parted(self) -> tuple[Any, Any]:
        good: Any = END
        for position in sorted(self.cuts, key=_backwards):
            cut = self.cuts[position]
            if cut.outcome == PARTED:
                return position, good
            if cut.outcome == AGREES:
                good = position
        return None, good

    def evaluate(self, positions: list[Any]) -> None:
        call = self.call
        looked = self.run(
            lambda r: Look(self.stream, r, self.measured, self.pinned, call=call, sample=positions)
        )["extra"]
        if not looked["full"]:
            self.unvisited.update(p for p in positions if p != END and p not in looked["adjoints"])
        sampled = looked["adjoints"]
        wanted = {position: sorted(held) for position, held in sampled.items()}
        high, low = self.displaced(list(wanted.items()), call)
        h = self.check.step
        for position, adjoints in sampled.items():
            plus, minus = high["contents"].get(position), low["contents"].get(position)
            if plus is None or minus is None:
                continue
            parts, rounding = {}, 0.0
            for number, adjoint in adjoints.items():
                one, other = plus.get(number), minus.get(number)
                if one is None or other is None or one.shape != other.shape or one.size != adjoint.size:
                    continue
                with np.errstate(all="ignore"):
                    moved = one.astype(np.float64) - other.astype(np.float64)
                    parts[number] = float(np.sum(adjoint.reshape(moved.shape) * moved)) / (2.0 * h)
                    coarse = np.abs(one.astype(np.float64)) * (float(np.finfo(one.dtype).eps) / (2.0 * h))
                    noisy = np.where(moved != 0.0, adjoint.reshape(moved.shape) * coarse, 0.0)
                    rounding += float(np.sum(np.square(noisy)))
            ad = float(sum(parts.values()))
            self.cuts[position] = self.judged(position, ad, float(np.sqrt(rounding)), parts)

    def judged(self, position: Any, ad: float, rounding: float, parts: dict[int, float]) -> Cut:
        noise = max(2.0 * self.check.uncertainty, ROUNDING * rounding)
        if not np.isfinite(ad):
            return Cut(position, ad, noise, PARTED, parts)
        apart = abs(ad - self.fd)
        if apart <= max(noise, SHARE * self.gap) and noise <= 0.5 * self.gap:
            outcome = AGREES
        elif apart > max(noise, SHARE * self.gap):
            outcome = PARTED
        else:
            outcome = UNKNOWN
        return Cut(position, ad, noise, outcome, parts)

    # -- what is there -------------------------------------------------------------------

    def number_steps(self, found: dict[str, Any]) -> None:
        """The line that is launched most often counts the steps."""
        counts: dict[tuple, int] = {}
        for _, op in sorted(self.ops.items()):
            if op["kind"] == "launch":
                counts[op["name"][:2]] = counts.get(op["name"][:2], 0) + 1
        most = max(counts.values(), default=0)
        self.steps: dict[Any, int] = {}
        found["steps"] = most if most >= 3 else 0
        if most < 3:
            return
        line = next(place for place, count in counts.items() if count == most)
        step = 0
        for position, op in sorted(self.ops.items()):
            step += op["name"][:2] == line
            self.steps[position] = step

    def row(self, cut: Cut) -> dict[str, Any]:
        row = {
            "ad": cut.ad,
            "fd": self.fd,
            "noise": cut.noise,
            "relative_error": judge.relative_error(cut.ad, self.fd),
            "outcome": cut.outcome,
            "end": cut.position == END,
        }
        return row if cut.position == END else {**row, **self.operation(cut.position)}

    def operation(self, position: int) -> dict[str, Any]:
        op = self.ops[position]
        return {
            "step": self.steps.get(position, 0),
            "what": op["kernel"] or op["kind"],
            "kind": op["kind"],
            "stack": op["stack"],
        }

    def carried(self, cut: Cut) -> list[str]:
        """Arrays other than the parameter that hold a good part of the difference at a place."""
        own = self.facts["parameter"]
        large = [n for n, part in cut.parts.items() if n != own and not abs(part) <= NAMED * self.gap]
        return [self.facts["names"][n] for n in large if self.facts["names"][n]]

    def inspect(self, found: dict[str, Any], bad: int, good: Any) -> None:
        """The operations between the two places, and what is the matter with their arrays."""
        suspects = [p for p in sorted(self.ops) if bad <= p and (good == END or p < good)]
        found["operations"] = rows = [self.operation(p) for p in suspects]
        if len(suspects) > PLACES:
            return
        call = self.call
        seen = self.run(
            lambda r: Look(self.stream, r, self.measured, self.pinned, call=call, inspect=suspects)
        )["extra"]["inspected"]
        ungraded = {p: seen.get(p, {}).get("ungraded", []) for p in suspects}
        high, low = self.displaced(list(ungraded.items()), call)
        names = self.facts["names"]
        off_tape = self.given_off_tape(suspects, self.cuts[bad], self.cuts.get(good))
        for position, row in zip(suspects, rows):
            row["changed"] = seen.get(position, {}).get("changed", [])
            row["finite"] = self.cuts[bad].ad == self.cuts[bad].ad
            plus, minus = (side["contents"].get(position, {}) for side in (high, low))
            row["ungraded"] = [
                names[n]
                for n in ungraded[position]
                if n in plus and n in minus and names[n] and not np.array_equal(plus[n], minus[n])
            ]
            one, other = (side["numbers"].get(position, {}) for side in (high, low))
            row["given"] = off_tape if position == suspects[-1] else []
            row["numbers"] = [label for label in one if one[label] != other.get(label, one[label])]

    def given_off_tape(self, suspects: list[int], bad: Cut, good: Cut | None) -> list[str]:
        """Arrays that no operation between two places has to do with, and that change there all the same."""
        if good is None or not np.isfinite(bad.ad):
            return []
        touched = {n for p in suspects for n in self.ops[p]["numbers"]}
        names = self.facts["names"]
        return [
            names[n] or "an array"
            for n, part in good.parts.items()
            if n not in touched and abs(part - bad.parts.get(n, 0.0)) > NAMED * self.gap
        ]

    # -- runs ----------------------------------------------------------------------------

    def displaced(self, wanted: list[tuple[Any, list[int]]], call: int | None) -> tuple[Any, Any]:
        serials = self.facts["serials"]
        names = {p: (self.ops[p]["name"] if p != END else END) for p, _ in wanted}
        places = {names[p]: (p, [(n, serials[n]) for n in numbers]) for p, numbers in wanted}

        def side(sign: float) -> Any:
            return self.run(
                lambda reporter: Shifted(
                    self.stream,
                    reporter,
                    self.measured,
                    self.pinned,
                    sign * self.check.step * self.vector,
                    self.look["seeds"],
                    self.included,
                    places,
                    call,
                )
            )

        return side(1.0), side(-1.0)

    def run(self, make: Callable[[Reporter], Any]) -> Any:
        if time.monotonic() > self.deadline:
            raise TimeoutError
        self.runs += 1

        def work(reporter: Reporter) -> None:
            self.stream.observer = make(reporter)
            self.run_user()

        report = run_in_child(work, self.deadline)
        if not isinstance(report, dict) or ("error" in report and report["error"] and "extra" not in report):
            raise ChildFailure(f"a run to localize the difference ended early ({report.get('error')})")
        return report


def _sharpest(measured: Measured) -> tuple[str, judge.Judgement]:
    """The differing direction whose difference stands out most from its noise."""
    differing = [(n, c) for n, c in measured.checks if c.outcome == judge.DIFFERS]

    def clear(item: tuple[str, judge.Judgement]) -> float:
        check = item[1]
        if not np.isfinite(check.ad):
            return 0.0
        return abs(check.ad - check.fd) / (check.uncertainty + 1.0e-9 * check.signal + 1.0e-300)

    return max(differing, key=clear)


def _backwards(position: Any) -> float:
    """Sorts places from the loss backwards."""
    return float("-inf") if position == END else -float(position)


def _spread(positions: list[int], count: int) -> list[int]:
    """At most ``count`` of the positions, evenly spread, both ends included."""
    if len(positions) <= count:
        return list(positions)
    picked = np.linspace(0, len(positions) - 1, count).round().astype(int)
    return [positions[i] for i in dict.fromkeys(picked.tolist())]
