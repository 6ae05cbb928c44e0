"""The shared vocabulary: plain, frozen records that flow from stage to stage.

Data flows one way: source → static → findings → probe → verdict → report. Every record
here is immutable, comparable and serialisable, so each stage can be cached, tested and
looked at alone. Paths are POSIX strings relative to the directory warplint was started in
where the file lies below it, absolute otherwise. Lines and columns are 1-based.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Verdict(str, enum.Enum):
    """What became of a finding; the same words in text, JSON, SARIF and the editor."""

    CONFIRMED = "confirmed"
    LATENT = "latent"
    UNVERIFIED = "unverified"
    DISMISSED = "dismissed"
    NOTE = "note"

    def __str__(self) -> str:
        return self.value

    @property
    def weight(self) -> int:
        """Rank used where several programs decide one finding: the heaviest verdict wins."""
        return _WEIGHT[self]


_WEIGHT = {
    Verdict.CONFIRMED: 4,
    Verdict.LATENT: 3,
    Verdict.UNVERIFIED: 2,
    Verdict.NOTE: 1,
    Verdict.DISMISSED: 0,
}


class Precision(str, enum.Enum):
    """How often a static finding of a rule is right, measured on the fixtures."""

    VERY_HIGH = "very-high"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    def __str__(self) -> str:
        return self.value


class Counterfactual(str, enum.Enum):
    """What a probe removes at run time to see whether a finding is the cause."""

    RESTORE_VALUES = "overwrite"
    """Put the values a recorded launch read back around its adjoint, and clear the adjoint of
    an array where the host overwrote it without a record."""
    REBUILD = "rebuilt"
    """Give a hash grid or a mesh, around an adjoint, what it held when the launch asked it."""
    SET_REQUIRES_GRAD = "no-gradient"
    """Allocate the arrays born at a site with ``requires_grad=True``."""
    ZERO_GRADIENTS = "kept-gradient"
    """Zero before a backward call what an earlier one left in the gradients it adds to."""
    DROP_REPLAYED = "replayed-launches"
    """Go back over the latest recording of a tape alone, not over earlier ones still on it."""
    DROP_DUPLICATE = "duplicate-launch"
    """Go back over a launch that was recorded twice only once."""
    CLEAR_RETAIN = "retained-gradient"
    """Clear ``retain_grad`` on the arrays born at a site."""
    RETAIN = "consumed-adjoint"
    """Have an array that is computed on the tape keep its gradient."""
    HOLD_CARRIED = "truncated-horizon"
    """Hold the state that tapes hand on at its content where each tape begins."""
    HAND_ON = "dropped-adjoint"
    """Seed the end of a segment with the adjoint of the state that begins the next one."""
    SEED_REPORTED = "seed-mismatch"
    """Seed the outputs with the derivative of the number the program reports."""
    SEED_LOSS = "dead-objective"
    """Begin a backward call that was given nothing with the number its tape ends with."""
    REFILL_SEED = "consumed-seed"
    """Fill a seed that an earlier pass used up again with what it was first given."""
    FRESH_GRADIENT = "stale-gradient"
    """Hand the reader of a gradient what the backward pass has just added to it."""
    ENABLE_BACKWARD = "backward-disabled"
    """Compile the kernels that a statement turned off with backward code."""
    HOLD_LIBRARY = "library-call"
    """Hold what a function of Warp's library makes constant in the finite difference."""
    RECORD = "not-recorded"
    """Put an operation that no tape recorded on the tapes that use what it wrote."""
    HOLD_READ = "host-read"
    """Hold what the host read of an array constant in the finite difference."""
    REPLACE_ADJOINT = "adjoint"
    """Put the measured derivative of a launch in the place of its adjoint."""

    ACCUMULATE_COPY = "copy-adjoint"
    """Let the adjoint of a copy accumulate (which it does from Warp 1.17 on)."""
    MORE_TURNS = "unconverged-solver"
    """Go on with a solver's iterations and see whether the objective moves."""
    NOTHING = "nothing"
    """Nothing is wrong that could be taken away: the finding is a note."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, order=True)
class Location:
    """A region of a source file (1-based; ``end_column`` is one past the last character).

    In a notebook, lines are those of a cell.
    """

    file: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    cell: int = field(default=0, metadata={"rare": True})
    """The cell of a notebook, counted from 1."""

    def __post_init__(self) -> None:
        if not self.end_line:
            object.__setattr__(self, "end_line", self.line)

    @property
    def source(self) -> str:
        """The name of the text that lines are counted in: the file, or a cell of it."""
        return f"{self.file}:cell {self.cell}" if self.cell else self.file

    def covers(self, file: str, line: int) -> bool:
        """Whether ``line`` of ``file`` lies inside this region."""
        return self.file == file and self.line <= line <= self.end_line


@dataclass(frozen=True, order=True)
class Related:
    """Another place that belongs to a finding, with what happens there."""

    location: Location
    message: str


@dataclass(frozen=True)
class ProbeRequest:
    """How a finding is to be proved.

    ``sites`` are the host statements at which the cause acts: the overwriting call for
    ``RESTORE_VALUES``, the allocation for ``SET_REQUIRES_GRAD``. ``kernel`` names the kernel
    and ``kernel_file`` its file when the cause lies in the kernel's own body.
    """

    counterfactual: Counterfactual
    sites: tuple[Location, ...] = ()
    kernel: str | None = None
    kernel_file: str | None = None


@dataclass(frozen=True)
class Finding:
    """A pattern the static pass saw; not yet a claim that a gradient is wrong."""

    rule: str
    message: str
    """One sentence; names the buffer as the user spelled it and both operations."""
    location: Location
    related: tuple[Related, ...] = ()
    buffer: str | None = None
    help: str | None = None
    """What to do, one sentence."""
    request: ProbeRequest | None = None

    @property
    def is_note(self) -> bool:
        """Whether it is true and worth saying, and no error whatever a probe finds."""
        return self.request is not None and self.request.counterfactual is Counterfactual.NOTHING

    @property
    def sort_key(self) -> tuple[Any, ...]:
        return (self.location, self.rule, self.message)


@dataclass(frozen=True)
class Program:
    """An entry file with its arguments: the unit that is run to decide findings."""

    file: str
    arguments: tuple[str, ...] = ()
    working_directory: str = "."
    closure: tuple[str, ...] = ()
    """Files of the checked tree the entry imports, itself included, sorted."""
    reaches_tape: bool = True
    """Whether the closure holds a tape or a manual adjoint launch; only such programs are run."""
    module: str | None = None
    """The name by which ``python -m`` runs it, where it cannot be run as a file."""
    node: str | None = None
    """The test in ``file`` that pytest runs, as it names it (``TestFit::test_it``)."""

    @property
    def name(self) -> str:
        """The file, and the test in it where it is one."""
        return self.file if self.node is None else f"{self.file}::{self.node}"

    @property
    def label(self) -> str:
        return " ".join((self.name, *self.arguments))


@dataclass(frozen=True)
class Check:
    """One directional comparison of autodiff and finite difference.

    ``ad`` is the inner product of the consumed gradient with the direction, ``fd`` the central
    difference of the objective along it, ``noise`` the uncertainty U of the difference, all in
    units of the objective per parameter step.
    """

    direction: str
    ad: float
    fd: float
    noise: float
    relative_error: float
    outcome: str
    """``agrees``, ``differs`` or ``inconclusive: <reason>``"""
    step: float = 0.0
    iteration: int = 0


@dataclass(frozen=True)
class Removal:
    """What happened when a cause was taken away: relative errors of the consumed gradient."""

    removed: str
    relative_error: float
    alone: float | None = None
    """Error with only this cause removed."""
    leave_one_out: float | None = None
    """Error with every other cause of the set removed and this one put back."""
    set: tuple[str, ...] = ()
    """The minimal set of causes whose joint removal brings the error within noise."""


@dataclass(frozen=True)
class Evidence:
    """The numbers behind a verdict."""

    warp: str
    device: str
    parameter: str
    objective: str
    checks: tuple[Check, ...]
    signature: str
    forward_passes: int
    counterfactual: Removal | None = None
    harness: str | None = None
    covered: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    """Rules that the numbers of a wrong gradient point at, in the order in which they are tried."""
    tracker: tuple[str, ...] = ()
    """What Warp's own overwrite tracker said of this program, if it was asked."""


@dataclass(frozen=True)
class Edit:
    """Replace a region of a file by ``text``."""

    location: Location
    text: str


@dataclass(frozen=True)
class Fix:
    """A change of the source, with the measured error before and after it."""

    applicability: str
    """``verified``: measured to be right; ``unsafe``: not measured; ``display``: described, not made."""
    edits: tuple[Edit, ...] = ()
    before: float | None = None
    after: float | None = None
    title: str = ""
    """What it does, in a few words."""


@dataclass(frozen=True)
class Result:
    """A finding with its verdict: what every report is rendered from."""

    rule: str
    name: str
    verdict: Verdict
    message: str
    location: Location
    related: tuple[Related, ...] = ()
    program: str | None = None
    reason: str | None = None
    evidence: Evidence | None = None
    fix: Fix | None = None
    help: str | None = None
    docs: str | None = None

    @property
    def sort_key(self) -> tuple[Any, ...]:
        place = self.location
        return (place.file, place.cell, place, self.rule, self.program or "", self.message)


class ProgramStatus(str, enum.Enum):
    """How a program's probe ended."""

    VERIFIED = "verified"
    WRONG = "wrong"
    INCONCLUSIVE = "inconclusive"
    BLOCKED = "blocked"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class ProgramRow:
    """One row of ``programs`` in the report: a program that was, or could not be, probed."""

    program: str
    arguments: tuple[str, ...]
    interpreter: str | None
    warp: str | None
    device: str | None
    status: ProgramStatus
    reason: str | None = None
    parameters: tuple[str, ...] = ()
    substitutions: tuple[str, ...] = ()
    forward_passes: int = 0
    seconds: float | None = None
    """Wall time; rendered only with ``--timings`` so that the same input gives the same bytes."""


@dataclass(frozen=True)
class Place:
    """One place of a backward pass: what autodiff makes of the objective there, and what it should."""

    what: str
    """``the loss``, ``before `integrate` ``, ``backward call 2``"""
    ad: float
    fd: float
    noise: float
    relative_error: float
    outcome: str
    step: int = 0
    """Time step on the tape (1-based); 0 where the tape has none."""
    location: Location | None = None


@dataclass(frozen=True)
class Localization:
    """Where autodiff and finite difference part, coming from the loss."""

    kind: str
    """``launch``, ``start``, ``skipped``, ``seed``, ``after``, or ``unknown``"""
    text: str
    location: Location | None = None
    parameter: str = ""
    direction: str = ""
    iteration: int = 0
    steps: int = 0
    """Time steps on the tape; 0 where nothing on it repeats."""
    windows: tuple[Place, ...] = ()
    """Backward call by backward call, where the objective has several."""
    places: tuple[Place, ...] = ()
    """From the loss backwards."""


@dataclass(frozen=True)
class Iteration:
    """One step of the optimizer."""

    number: int
    objective: float
    update: float | None = None
    """Length of the step that followed."""
    along: float | None = None
    """Its part down the gradient."""


@dataclass(frozen=True)
class Course:
    """What becomes of the objective over the iterations."""

    verdict: str
    """``falls``, ``grows``, ``oscillates``, ``stands still`` or ``not finite``"""
    text: str
    hints: tuple[str, ...] = ()
    iterations: tuple[Iteration, ...] = ()


@dataclass(frozen=True)
class Account:
    """What `warplint verify` tells of a program beside its verdicts."""

    localization: Localization | None = None
    course: Course | None = None
    numbers: tuple[str, ...] = ()
    """The numbers that show why something could not be measured."""
    advice: tuple[str, ...] = ()
    """What to do, or to configure, where nothing could be told."""
    memory: tuple[str, ...] = ()
    horizon: str | None = None
    """How the program was shortened for the measurement."""
    explained: tuple[str, ...] = ()
    """How the parameters, the objective and the consumed gradient were found."""


@dataclass(frozen=True)
class Report:
    """Everything a report is rendered from, in order."""

    results: tuple[Result, ...] = ()
    programs: tuple[ProgramRow, ...] = ()
    fixed: tuple[Result, ...] | None = None
    """What was fixed in this run, as it was before; None where nothing was to be fixed."""
    notices: tuple[str, ...] = ()
    """Lines worth saying beside the results (skipped calls, nothing could be probed …)."""
    shard: Mapping[str, Any] | None = None
    """Of a part of a run: which one, and what is needed to put the parts together."""
    account: Account | None = None
    """The story of one program, where it was asked for (`warplint verify`)."""


@dataclass(frozen=True)
class Rule:
    """A rule's page in ``rules/``: front matter and text. The page is where the text lives."""

    id: str
    name: str
    summary: str
    level: str
    precision: Precision
    versions: str
    docs: str
    signature: str = ""
    fix: str = "none"
    text: str = ""
    """The page's Markdown without its front matter."""
    bad: str = ""
    good: str = ""
    """The runnable example programs of the page."""
    extra: Mapping[str, str] = field(default_factory=dict)


def to_plain(value: Any) -> Any:
    """Turn records into plain dicts, lists and scalars (for JSON and for hashing)."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (
            f.name for f in dataclasses.fields(value) if not f.metadata.get("rare") or getattr(value, f.name)
        )
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(v) for v in value]
    return value


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def from_plain(kind: Any, value: Any) -> Any:
    """The record that ``to_plain`` made plain; a value of another shape is a ``TypeError``."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        inner = [k for k in arguments if k is not type(None)]
        return None if value is None else from_plain(inner[0], value)
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, got {value!r}")
        return tuple(from_plain(arguments[0], v) for v in value)
    if origin is not None and issubclass(origin, Mapping):
        return {k: from_plain(arguments[1], v) for k, v in value.items()}
    if dataclasses.is_dataclass(kind):
        hints = _hints(typing.cast(type, kind))
        if not isinstance(value, dict):
            raise TypeError(f"expected fields, got {value!r}")
        return kind(**{name: from_plain(hints[name], v) for name, v in value.items()})  # type: ignore[operator]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if kind is float and value in ("nan", "inf", "-inf"):
        return float(value)  # JSON has no other word for them
    if kind is not Any and not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
