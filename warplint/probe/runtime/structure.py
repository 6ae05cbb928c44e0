"""What a program's run is made of: versions of parameters, their episodes and backward calls.

A *parameter* is an array whose gradient user code reads. Its content between two changes
made off the tape is a *version*; the *episode* of a version goes from the first event that
reads it to the next version's. What the optimizer consumed is the gradient's bytes at the
moment user code read them; what it descends on is the sum of the scalars (or seeded inner
products) handed to the backward calls before that read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WATCHING = 0.3
"""Part of the scout's time that the program itself takes."""


@dataclass
class Read:
    """User code took the gradient: after how many backward calls, and since which reset."""

    name: tuple
    kind: str
    backwards: int
    reset: int
    total: int = 0
    """Event number, to order it among the backward calls."""
    content: int = 0
    """What was read, hashed."""


@dataclass
class Backward:
    """A backward call (or the first launch of a manual adjoint chain)."""

    name: tuple
    stack: tuple
    total: int
    """Event number, to order it among the episode's events."""
    loss: str | None
    kind: str


@dataclass
class Episode:
    """One version of one parameter, from its first read to the next version's."""

    family: tuple
    serial: tuple
    start: tuple
    """Name of the first event that reads the version: the place to perturb it."""
    start_total: int
    leaf: bool
    """False when a recorded operation computed it: an intermediate, not a parameter."""
    label: str
    place: tuple
    shape: tuple
    dtype: str
    reads: list[Read] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    next_start: tuple | None = None
    next_serial: tuple | None = None
    complete: bool = False
    uses: list[tuple[tuple, int]] = field(default_factory=list)
    """(name, number) of the events that read the version."""
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """(number of a backward call that changed the gradient, its resets by then)."""
    written: bool = False
    """Whether a recorded launch wrote to the array during the episode."""
    shared: bool = False
    """Whether another library (torch …) holds the parameter's memory."""
    rewritten: bool = False
    """Whether user code set the gradient anew between the last step and this version's pass: what
    the pass adds to is given then (a momentum that is kept there), not left over."""
    moved: bool = False
    """Whether it begins later than at the version's first use."""
    launched: bool = False
    """Whether a launch has read the version."""
    superseded: bool = False
    """Whether the array holds another version at the moment."""
    resumed: tuple | None = None
    """Name of the first event that reads the version after it was put back last, if it was."""
    variable: int = 0
    """Number of the parameter this is a version of."""


@dataclass
class Structure:
    """What the scout saw."""

    episodes: list[Episode] = field(default_factory=list)
    backwards: int = 0
    tapes: int = 0
    adjoints: int = 0
    events: int = 0
    seconds: float = 0.0
    ending: str = ""
    error: str | None = None
    graph_replays: int = 0
    gradient_reads: int = 0
    cuda_on_cpu: bool = False
    met: set[str] = field(default_factory=set)
    """Modules whose constants are to be replaced and that were loaded."""
    overridden: set[str] = field(default_factory=set)
    """Constants (``module.NAME``) that were found and replaced."""
    files: list[str] = field(default_factory=list)
    """Files that the program read or imported."""
    listings: list[str] = field(default_factory=list)
    """Directories whose entries it asked for."""
    lines: set[tuple] = field(default_factory=set)
    """(file, line) of every user frame an event or an allocation lies under."""
    running: set[tuple] = field(default_factory=set)
    """Families of arrays that are carried from pass to pass and updated in place off the tape."""
    lagging: set[tuple] = field(default_factory=set)
    """Families of arrays that were copied from a parameter in an earlier iteration than uses them,
    and the (file, line) where the host copied one."""
    taped: set[tuple] = field(default_factory=set)
    """Of these, the frames of recorded launches."""
    called_back: set[tuple] = field(default_factory=set)
    """And those of backward calls."""
    custom_adjoints: bool = False
    """Whether a recorded launch calls a function with a custom adjoint."""
    loading: float = 0.0
    """Seconds of all that went into loading kernels."""
    kept: dict[str, float] | None = None
    """What the arrays of a step take, where all of them take too much: bytes, steps so far."""

    @property
    def pass_seconds(self) -> float:
        """About how long one iteration takes, without the watching; 0 if none was complete."""
        counts: dict[tuple, int] = {}
        for episode in self.episodes:
            counts[episode.family] = counts.get(episode.family, 0) + 1
        return WATCHING * (self.seconds - self.loading) / max(counts.values()) if counts else 0.0
