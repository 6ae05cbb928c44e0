"""Directions and steps at an episode's start: autodiff against finite differences."""

from __future__ import annotations

import dataclasses
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from . import arrays, judge
from .carried import CarriedState, Windows
from .episodes import GradientChild, ObjectiveChild
from .forks import ChildFailure, Reporter
from .held import HostReads
from .hooks import Observer, Stream
from .host_copies import HostCopies
from .loading import LOADING, load_modules
from .structure import Episode

Maker = Callable[[Any, Reporter], Observer]
"""Builds the observer of a run from the parameter and the run's reporter."""

ZERO_SCALE = 1.0e-2
"""Scale of a parameter that is zero: the ladder of steps reaches far to both sides of it."""
SMALLEST_SCALE = 1.0e-12
"""Below this a parameter counts as zero."""
DOUBT = 3.0
"""A difference must exceed this multiple of what autodiff itself changes by around the point."""
SPACING = 1.0e-5
"""Spacing of the noise estimate's evaluations, relative to the parameter's scale."""
ROUGH_SIGNAL = 32.0
"""Rounding errors by which autodiff and finite difference must differ over the smallest displacement."""
ROUGH_NOISE = 64.0
"""Rounding errors above which the noise of an objective is more than rounding."""
LEAST_TIME = 1.0
"""Seconds left below which an iteration is not begun: they would tell nothing of how long it takes."""
FIRST_SHARE = 0.4
"""Share of the time left that the first fork of an iteration may take."""
TYPICAL_PASSES = 40
"""Passes of a full comparison; where they do not fit, two directions have to do."""
FEWEST_PASSES = 12
"""Passes below which nothing can be judged."""
HUNG = "a fork of the program hung (threads do not survive a fork)"
SHORTEN = "shorten the program with --entry 'program arguments' or --set, or raise --timeout"


class TooLong(Exception):  # noqa: N818  (reads as what happened)
    """Not enough time is left for the passes a verdict takes; the text is the reason."""


class Hung(Exception):  # noqa: N818  (reads as what happened)
    """A run that should have come back did not; the text is the reason."""


class Unmeasurable(Exception):  # noqa: N818  (reads as what happened)
    """This episode cannot be measured; the text is the reason."""


@dataclass
class Direction:
    """A direction in parameter space, reproducible from its name and the consumed gradient."""

    name: str
    vector: Any


@dataclass
class Measured:
    """All that was measured at one episode of one parameter."""

    episode: Episode
    iteration: int
    start: Any = None
    """The parameter's content at the episode's start (float64)."""
    gradient: Any = None
    checks: list[tuple[str, judge.Judgement]] = field(default_factory=list)
    vectors: dict[str, Any] = field(default_factory=dict)
    objective: float = float("nan")
    backwards: int = 0
    forward_passes: int = 0
    sigma: float = 0.0
    scale: float = 1.0
    problem: str | None = None
    too_long: bool = False
    """Whether the problem is that a pass takes too long."""
    hung: bool = False
    """Whether the problem is that a fork of the program never came back."""
    stale_view: bool = False
    changed_by: tuple[str, tuple] | None = None
    """What changed the gradient that a stale view showed: the operation and its call site."""
    constant: list[tuple[str, int, str]] = field(default_factory=list)
    """Host copies (file, line, name) that the gradient treats as constants, if that explains it."""
    held: list[tuple[str, judge.Judgement]] = field(default_factory=list)
    """The differing checks again, with these copies held constant."""
    host_reads: list[dict[str, Any]] = field(default_factory=list)
    """Where the host read values that depend on the parameter: key, stack, array, backwards."""
    windows: Windows | None = None
    reported: Any = None
    """The reported number (``reported.Reported``) that the finite differences here are of, if it is not
    what the backward pass was seeded for."""
    adjoint_noise: float = 0.0
    curvature: float | None = None
    """Second derivative of the objective along the direction ``gradient``."""
    child_seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """``differs`` if any direction does, ``agrees`` if one does and none differs."""
        if self.problem:
            return "inconclusive: " + self.problem
        outcomes = [c.outcome for _, c in self.checks]
        if judge.DIFFERS in outcomes:
            return judge.DIFFERS
        weak = [o for o in outcomes if o != judge.AGREES]
        if judge.AGREES in outcomes and self._strong_enough():
            return judge.AGREES
        return weak[0] if weak else "inconclusive: nothing was compared"

    def _strong_enough(self) -> bool:
        """At least one agreeing direction, and the weak ones are weak for want of signal only."""
        strongest = max((c.signal for _, c in self.checks if c.outcome == judge.AGREES), default=0.0)
        for _, check in self.checks:
            weak = check.outcome != judge.AGREES and "kink" not in check.outcome
            open_question = max(check.uncertainty, abs(check.ad - check.fd)) > judge.POWER * check.signal
            if weak and check.signal > strongest and open_question:
                return False
        return True


def directions(gradient: Any, seed: int, *, brief: bool) -> list[Direction]:
    """What is compared: the consumed gradient, random signs, single coordinates, the zero part.

    A gradient along itself hides errors orthogonal to it, and half of the coordinates cut can
    hide from a few random directions: so the coordinates whose adjoint is exactly zero get a
    direction of their own.
    """
    shape = gradient.shape
    clean = np.where(np.isfinite(gradient), gradient, 0.0)
    peak = float(np.max(np.abs(clean))) if clean.size else 0.0
    rng = np.random.Generator(np.random.PCG64(seed))
    found: list[Direction] = []
    if peak > 0.0:
        found.append(Direction("gradient", clean / peak))
    signs = rng.choice(np.array([-1.0, 1.0]), size=shape)
    if clean.size > 1 or peak == 0.0:
        found.append(Direction("random signs 1", signs))
    if brief:
        return found[:2]
    if clean.size > 2:
        found.append(Direction("random signs 2", rng.choice(np.array([-1.0, 1.0]), size=shape)))
    flat = np.abs(clean).ravel()
    if clean.size > 1 and peak > 0.0:
        found.append(_coordinate(int(np.argmax(flat)), shape))
    zeros = np.isfinite(gradient) & (gradient == 0.0)
    if clean.size > 1 and 0 < int(zeros.sum()) < clean.size:
        found.append(Direction("coordinates with zero adjoint", np.where(zeros, signs, 0.0)))
    if clean.size > 3:
        found.append(_coordinate(int(rng.integers(clean.size)), shape))
    unique: dict[str, Direction] = {d.name: d for d in found}
    return list(unique.values())


def _coordinate(index: int, shape: tuple) -> Direction:
    vector = np.zeros(int(np.prod(shape)))
    vector[index] = 1.0
    position = tuple(int(i) for i in np.unravel_index(index, shape))
    text = ", ".join(map(str, position))
    return Direction(f"coordinate [{text}]", vector.reshape(shape))


class Place(Protocol):
    """An episode's start, and runs of the program that go on from there."""

    stream: Stream

    def parameter(self) -> Any:
        """The parameter's content (a numpy copy), or None if the parameter is not found again."""

    def run(self, make: Maker, deadline: float) -> dict:
        """What the observer reports that ``make`` builds, in a run of its own, for the parameter.

        Raises ``ChildFailure``.
        """


class Measurement:
    """The comparison of autodiff and finite differences at one episode's start.

    ``waiting`` is the number of episodes that still come after this one; ``fixed`` names
    directions and steps to take again instead of judging.
    """

    def __init__(
        self,
        place: Place,
        deadline: float,
        waiting: int = 0,
        fixed: list[tuple[str, float]] | None = None,
        usual: float | None = None,
    ) -> None:
        self.place = place
        self.deadline = deadline
        self.waiting = waiting
        self.fixed = fixed
        self.usual = usual
        """Seconds that the scout needed for all its iterations: a run that takes much longer hangs."""
        self.dtype: Any = np.float32

    def measure(self, episode: Episode, iteration: int, brief: bool) -> Measured:
        result = Measured(episode, iteration)
        try:
            self._measure(result, brief)
        except TooLong as reason:
            result.problem, result.too_long = str(reason), True
        except Hung as reason:
            result.problem, result.hung = str(reason), True
        except Unmeasurable as reason:
            result.problem = str(reason)
        except Exception as error:
            # Inside the user's program an exception of ours would look like one of theirs.
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"
            result.problem = f"the probe itself failed: {text}"
        return result

    def _measure(self, result: Measured, brief: bool) -> None:
        episode = result.episode
        content = self.place.parameter()
        if content is None:
            raise Unmeasurable(
                "the parameter was not found again: the program's events are not deterministic"
            )
        self.dtype = dtype = content.dtype
        if dtype.kind != "f":
            raise Unmeasurable("the parameter is not made of floating-point numbers")
        result.start = start = content.astype(np.float64)

        began = time.monotonic()
        base = self.first_run(result)
        # Kernels that the child had to load are loaded here too, so that the next need not.
        loading = base["loading"].seconds - LOADING.seconds
        result.child_seconds = time.monotonic() - began - loading
        load_modules(base["loading"].modules - LOADING.modules)
        patience = max(10.0, 30.0 * result.child_seconds)
        self.check_budget(result.child_seconds)
        share = (self.deadline - time.monotonic()) / (self.waiting + 1)
        brief = brief or TYPICAL_PASSES * result.child_seconds > share
        plain = self.following_run(result) if self.may_be_stale(episode) else None
        twin = plain or self.gradient_run(result)
        # A run on to the next version may pass further backward calls.
        twin["objectives"] = twin["objectives"][: len(base["objectives"])]
        gradient = self.compare_twins(result, base, twin, start.shape)
        if plain is not None:
            self.check_live_view(result, plain)
        gradient = result.gradient

        included = base["included"]
        seeds = base["seeds"]
        terms = [v for v, counts in zip(base["objectives"], included) if counts]
        objective = float(np.sum(terms))
        result.objective, result.backwards = objective, len(terms)
        if not np.isfinite(objective):
            raise Unmeasurable(f"the objective is {objective} at this iteration")
        result.scale = scale = parameter_scale(start)
        resolution = base["resolution"]
        total = float(np.sum(np.abs(gradient[np.isfinite(gradient)])))
        reference = scale * total if total > 0.0 else None

        def at(
            vector: Any,
            t: float,
            held: HostCopies | None = None,
            reads: HostReads | None = None,
            carried: CarriedState | None = None,
        ) -> float:
            def make(parameter: Any, reporter: Reporter) -> Observer:
                displace(parameter, start + t * vector)
                return ObjectiveChild(episode, parameter, reporter, seeds, included, held, reads, carried)

            self.count(result)
            try:
                report = self.place.run(make, min(self.deadline, time.monotonic() + patience))
            except ChildFailure as failure:
                if failure.hung and time.monotonic() >= self.deadline:
                    raise Unmeasurable("the time limit was reached") from None
                if failure.hung:
                    raise Hung(HUNG) from None
                return float("nan")
            if carried is not None:
                carried.changed = carried.changed or report.get("carried", False)
            if held is not None:
                held.changed |= report.get("changed", set())
            if reads is not None:
                reads.changed.update(report.get("reads", {}))
            return float(report["objective"])

        def line_along(direction: Direction) -> judge.Line:
            vector = direction.vector

            def slope(t: float) -> float:
                high = (start + t * vector).astype(dtype).astype(np.float64)
                low = (start - t * vector).astype(dtype).astype(np.float64)
                with np.errstate(all="ignore"):
                    weighted = gradient * (high - low)
                return float(np.sum(weighted)) / (2.0 * t)

            finite = np.where(np.isfinite(gradient), gradient, 0.0)
            return judge.Line(
                at=lambda t: at(vector, t),
                slope=slope,
                scale=scale,
                base=objective,
                resolution=resolution,
                adjoint_rounding=16.0 * resolution * float(np.sum(np.abs(finite * vector))),
                reference=reference,
            )

        repeat = self.fixed
        seed = 1 + episode.start_total
        chosen = directions(gradient, seed, brief=brief and repeat is None)
        if repeat is not None:
            for direction in chosen:
                result.vectors[direction.name] = direction.vector
            known = {d.name: d for d in chosen}
            result.checks = [
                (name, take_again(line_along(known[name]), h)) for name, h in repeat if name in known
            ]
            return
        first = line_along(chosen[0])
        noise = judge.Noise(first, SPACING * scale)
        smooth = False
        for number, direction in enumerate(directions(gradient, seed, brief=False)):
            wrong = sum(c.outcome == judge.DIFFERS for _, c in result.checks)
            # A difference is believed when a second direction shows it too.
            if wrong >= 2 or (number >= len(chosen) and wrong != 1):
                break
            line = first if number == 0 else line_along(direction)
            result.vectors[direction.name] = direction.vector
            verdict = judge.judge(line, noise)
            result.sigma = noise.level
            if direction.name == "gradient":
                result.curvature = judge.curvature(line, noise.level)
            if verdict.outcome == judge.DIFFERS and not result.stale_view and np.isfinite(verdict.ad):
                verdict = self.doubt(result, start, direction, verdict)
                if verdict.outcome == judge.DIFFERS and not smooth:
                    verdict = doubt_roughness(line, start, dtype, verdict)
                    smooth = verdict.outcome == judge.DIFFERS  # of the objective, not of a direction
            result.checks.append((direction.name, verdict))
        if result.outcome == judge.DIFFERS and not result.stale_view:
            if base["copied"]:
                self.hold_host_copies(result, base["copied"], at)
            self.find_host_reads(result, at)
            if not result.constant:
                self.hold_carried_state(result, base["copied"], at)

    def hold_carried_state(self, result: Measured, copied: HostCopies, at: Any) -> None:
        """What is the finite difference if the state is held constant where each tape begins?

        It is the one of windows that do not know of each other; where it is another than the
        episode's, the horizon matters.
        """
        fresh = CarriedState(self.place.stream.sites)
        carried = self.gradient_run(result, carried=fresh)["carried"]
        if not carried:
            return
        differing = [(name, check) for name, check in result.checks if check.outcome == judge.DIFFERS]
        held = {}
        for name, check in differing:
            vector, h = result.vectors[name], check.step
            high, low = (at(vector, t, copied or None, None, carried) for t in (h, -h))
            held[name] = (high - low) / (2.0 * h)
        if not carried.changed or not np.all(np.isfinite(list(held.values()))):
            return
        result.windows = Windows(carried.names, carried.passes, carried.session, held)

    def find_host_reads(self, result: Measured, at: Any) -> None:
        """Notes where host code reads values that change with the parameter."""
        reads = self.gradient_run(result, host_reads=HostReads())["host_reads"]
        reads.places = set()
        for name, check in result.checks:
            if check.outcome == judge.DIFFERS:
                at(result.vectors[name], check.step, reads=reads)
        for name, seen in sorted(reads.changed.items()):
            if all(known["place"] != name[:2] for known in result.host_reads):
                result.host_reads.append({"place": name[:2], **seen})

    def hold_host_copies(self, result: Measured, copied: HostCopies, at: Any) -> None:
        """Does the gradient agree if what was copied through the host is held constant?

        Then all of the difference flows through these copies: a path that is cut, by mistake or
        on purpose (a detached target, the start of a truncated window).
        """
        agreeing = []
        for name, check in result.checks:
            if check.outcome != judge.DIFFERS:
                continue
            vector, h = result.vectors[name], check.step
            fd = (at(vector, h, copied) - at(vector, -h, copied)) / (2.0 * h)
            allowed = check.uncertainty + judge.FLOOR * max(abs(check.ad), abs(fd))
            if not abs(fd - check.ad) <= min(2.0 * allowed, 0.25 * abs(check.fd - check.ad)):
                return
            agreeing.append((name, dataclasses.replace(check, fd=fd, outcome=judge.AGREES)))
        result.held = agreeing
        result.constant = copied.places(self.place.stream.sites)

    def first_run(self, result: Measured) -> dict:
        """The first run tells how long one takes; it may not use up the time of all others."""
        began = time.monotonic()
        if self.deadline - began < LEAST_TIME:
            raise Unmeasurable("the time limit was reached")
        share = FIRST_SHARE * (self.deadline - began)
        patience = share if self.usual is None else max(5.0, 3.0 * self.usual)
        try:
            return self.gradient_run(result, within=min(share, patience))
        except Unmeasurable:
            taken = result.child_seconds = time.monotonic() - began
            if taken >= share:
                raise TooLong(f"one pass of an iteration takes more than {taken:.0f} s; {SHORTEN}") from None
            if taken >= patience:
                raise Hung(HUNG) from None
            raise

    def check_budget(self, pass_seconds: float) -> None:
        """Says early that the time will not do, instead of running into the limit."""
        left = self.deadline - time.monotonic()
        if FEWEST_PASSES * pass_seconds > left:
            raise TooLong(
                f"one pass of an iteration takes {pass_seconds:.1f} s, so {FEWEST_PASSES} of them do not fit "
                f"into the {max(left, 0.0):.0f} s left; {SHORTEN}"
            )

    def doubt(
        self,
        result: Measured,
        start: Any,
        direction: Direction,
        verdict: judge.Judgement,
    ) -> judge.Judgement:
        """Before a difference is believed: does autodiff tell the same on both sides of the point?

        The finite difference is the mean derivative between ``x - hd`` and ``x + hd``. If autodiff
        is right, what its own mean over both ends departs from its value at ``x`` bounds what may
        lie between: curvature of the gradient, a kink or a jump, and the rounding of a long
        float32 adjoint. A difference that is no larger cannot be held against it.
        """
        slopes = []
        for t in (-verdict.step, verdict.step):
            report = self.gradient_run(result, start + t * direction.vector)
            if report["gradient"] is not None:
                slopes.append(float(np.sum(report["gradient"].reshape(start.shape) * direction.vector)))
        here = float(np.sum(result.gradient * direction.vector))
        moved = abs(float(np.mean(slopes)) - here) if len(slopes) == 2 else 0.0
        if not np.isfinite(moved):
            return verdict
        result.adjoint_noise = max(result.adjoint_noise, moved)
        if abs(verdict.ad - verdict.fd) <= verdict.uncertainty + DOUBT * moved:
            verdict.outcome = "inconclusive: the gradient itself is this uncertain around the point"
        return verdict

    def gradient_run(
        self,
        result: Measured,
        value: Any = None,
        *,
        within: float | None = None,
        **options: Any,
    ) -> dict:
        """A run on to the gradient's use, the parameter at ``value``; ``within`` bounds its seconds."""
        episode = result.episode

        def make(parameter: Any, reporter: Reporter) -> Observer:
            if value is not None:
                displace(parameter, value)
            return GradientChild(episode, parameter, reporter, **options)

        self.count(result)
        try:
            limit = self.deadline if within is None else min(self.deadline, time.monotonic() + within)
            return self.place.run(make, limit)
        except ChildFailure as failure:
            raise Unmeasurable(f"an unperturbed fork of the program {failure.reason}") from None

    def count(self, result: Measured) -> None:
        result.forward_passes += 1
        if time.monotonic() > self.deadline:
            raise Unmeasurable("the time limit was reached")

    def compare_twins(self, result: Measured, base: dict, twin: dict, shape: tuple) -> Any:
        if base["gradient"] is None:
            reason = base["error"] or "the gradient was not read again"
            raise Unmeasurable(f"an unperturbed fork did not reach the gradient's use ({reason})")
        if not base["objectives"]:
            raise Unmeasurable("no backward call belongs to this gradient")
        if not base["terms"]:
            raise Unmeasurable(
                "no objective: a backward call without a loss and without a seed that was seen"
            )
        gradient = base["gradient"]
        if gradient.size != int(np.prod(shape)):
            raise Unmeasurable("the gradient's size is not the parameter's")
        result.gradient = gradient = gradient.reshape(shape)
        other = twin["gradient"]
        if other is None or (
            base["objectives"] != twin["objectives"]
            and not (np.allclose(base["objectives"], twin["objectives"], rtol=1e-6, atol=0.0, equal_nan=True))
        ):
            values = f"{sum(base['objectives'])!r} and {sum(twin['objectives'])!r}"
            raise Unmeasurable(f"nondeterministic: two unperturbed runs gave the objectives {values}")
        return gradient

    def may_be_stale(self, episode: Episode) -> bool:
        """Whether the gradient is read as a live view."""
        return any(r.kind == "view" for r in episode.reads)

    def following_run(self, result: Measured, *, copies: bool = False) -> dict:
        """A run on to the parameter's next version; ``copies`` hands out copies, not views."""
        births = self.place.stream.births
        serial = result.episode.next_serial

        def following() -> Any:
            return births.live.get(serial) if serial is not None else None

        return self.gradient_run(result, until_next=True, copies=copies, next_parameter=following)

    def check_live_view(self, result: Measured, plain: dict) -> None:
        """On the CPU ``grad.numpy()`` is a live view that a later ``tape.zero()`` empties.

        How a view is used cannot be hooked; but if handing out copies changes the next
        version of the parameter, the program used the view after it had changed.
        """
        copied = self.following_run(result, copies=True)
        if result.episode.next_start is None:
            # An emptied gradient may also end the optimization at once.
            same = plain["continued"] or not copied["continued"]
        else:
            same = plain["next"] is None or copied["next"] is None or plain["next"] == copied["next"]
        if same or self.following_run(result)["next"] != plain["next"]:
            return  # a version that comes out differently every time tells nothing
        late = plain["late"]
        if late is not None and late.size == result.gradient.size:
            result.stale_view = True
            result.changed_by = plain["changed_by"]
            result.gradient = late.reshape(result.gradient.shape)


def displace(parameter: Any, value: Any) -> None:
    """Gives the parameter another content, rounded to its own precision."""
    memory = arrays.memory(parameter)
    memory[...] = value.astype(memory.dtype)


def doubt_roughness(line: judge.Line, start: Any, dtype: Any, verdict: judge.Judgement) -> judge.Judgement:
    """Is the finite difference the slope of the very piece the point lies on?

    Where surfaces hide each other or elements switch, the objective jumps between nearby points.
    Autodiff differentiates the smooth piece; a difference quotient over many jumps tells another
    slope, however well its steps agree. So the smallest displacements that can still tell
    autodiff and finite difference apart are tried: if most of them agree on a slope that is not
    the finite difference's, it is no derivative and cannot be held against autodiff.
    """
    gap = abs(verdict.ad - verdict.fd)
    spacing = 16.0 * float(np.finfo(dtype).eps) * max(line.scale, float(np.max(np.abs(start))))
    delta = max(ROUGH_SIGNAL * line.resolution * abs(line.base) / gap, spacing)
    if delta > verdict.step / 8.0:
        return verdict
    values = [line.value(k * delta) for k in range(-3, 4)]
    slopes = np.diff(values) / delta
    local = float(np.median(slopes))
    together = int(np.sum(np.abs(slopes - local) <= 0.25 * gap))
    # Rounding alone may tilt the smallest displacements too; jumps are what it cannot make.
    jumps = float(np.max(np.abs(slopes - local))) > 8.0 * gap
    if (
        (jumps or verdict.sigma > ROUGH_NOISE * line.resolution * abs(line.base))
        and together >= 4
        and abs(local - verdict.fd) > 0.25 * gap
    ):
        verdict.outcome = "inconclusive: rough, the objective jumps and has another slope between its jumps"
    return verdict


def parameter_scale(start: Any) -> float:
    """Root mean square of a parameter's values, in its own units."""
    scale = float(np.sqrt(np.mean(start**2))) if start.size else 0.0
    if not np.isfinite(scale):
        return 1.0
    return scale if scale >= SMALLEST_SCALE else ZERO_SCALE


def take_again(line: judge.Line, h: float) -> judge.Judgement:
    """One central difference at a given step, without judging it."""
    ad = line.slope(h)
    fd = (line.value(h) - line.value(-h)) / (2.0 * h)
    return judge.Judgement(judge.MEASURED, ad, fd, 0.0, h, 0.0, max(abs(ad), abs(fd)))
