"""What the checks share: registration, precedence, the wording of places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warplint.model import Counterfactual, Finding, Location, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import Hazard, Reset, ScopeGraph
    from warplint.static.host.events import Binding, Event
    from warplint.static.host.values import Buffer
    from warplint.static.kernels.summary import Site
    from warplint.static.loops import Loops

__all__ = [
    "Check",
    "Claims",
    "LoopCheck",
    "backward_notes",
    "check",
    "check_loops",
    "hazard_finding",
    "location",
    "loop_checks",
    "registered",
    "reset_finding",
    "spelled",
]

Runner = Callable[["ScopeGraph", "Claims"], Iterable[Finding]]
LoopRunner = Callable[["Loops", "Claims"], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """A registered rule. Lower ``order`` runs first and claims what it reports."""

    rule: str
    order: int
    run: Runner


@dataclass(frozen=True)
class LoopCheck:
    """A registered rule about what happens between tape scopes."""

    rule: str
    order: int
    run: LoopRunner


_CHECKS: dict[str, Check] = {}
_LOOP_CHECKS: dict[str, LoopCheck] = {}


def check(rule: str, *, order: int) -> Callable[[Runner], Runner]:
    """Register a function as the check of a rule."""

    def register(run: Runner) -> Runner:
        _CHECKS[rule] = Check(rule, order, run)
        return run

    return register


def check_loops(rule: str, *, order: int) -> Callable[[LoopRunner], LoopRunner]:
    """Register a function as the check of a rule about the training loop."""

    def register(run: LoopRunner) -> LoopRunner:
        _LOOP_CHECKS[rule] = LoopCheck(rule, order, run)
        return run

    return register


def loop_checks() -> tuple[LoopCheck, ...]:
    return tuple(sorted(_LOOP_CHECKS.values(), key=lambda c: (c.order, c.rule)))


def registered() -> tuple[Check, ...]:
    return tuple(sorted(_CHECKS.values(), key=lambda c: (c.order, c.rule)))


@dataclass
class Claims:
    """What has been reported: the more specific rule speaks, once."""

    buffers: dict[int, str] = field(default_factory=dict)
    """Buffers of the current scope that a rule has reported as overwritten."""
    launches: dict[Site, str] = field(default_factory=dict)
    """Launches that a rule has reported because of what their kernel does."""
    reported: set[tuple[str, Any]] = field(default_factory=set)

    def next_scope(self) -> None:
        self.buffers = {}
        self.launches = {}

    def taken(self, buffer: Buffer, rule: str) -> bool:
        """Whether another rule has already reported this buffer in this scope."""
        return self.buffers.get(buffer.number, rule) != rule

    def take(self, buffer: Buffer, rule: str) -> None:
        self.buffers.setdefault(buffer.number, rule)

    def first(self, rule: str, *keys: Any) -> bool:
        """Whether none of the keys was reported by this rule before; remembers all of them."""
        fresh = all((rule, k) not in self.reported for k in keys)
        self.reported.update((rule, k) for k in keys)
        return fresh


def location(site: Site) -> Location:
    """Lines and columns of a place."""
    found: Location = site.module.location(site.node)
    return found


def spelled(buffer: Buffer, binding: Binding | None = None) -> str:
    """The name of a buffer as the user would say it."""
    return buffer.name or (binding.text if binding is not None else "") or f"the array of {buffer.origin}"


def turn_words(event: Event) -> str:
    """`` on turn 3`` when the event stands in a loop of the host."""
    return f" on turn {event.turns[-1] + 1}" if event.turns else ""


def allocation_note(buffer: Buffer) -> Iterator[Related]:
    if buffer.origin != "parameter":
        yield Related(location(buffer.site), f"`{spelled(buffer)}` is allocated here")


def backward_notes(graph: ScopeGraph) -> Iterator[Related]:
    for backward in graph.recording.backwards[:1]:
        yield Related(location(backward.site), "the backward pass runs here")


def hazard_finding(
    graph: ScopeGraph,
    rule: str,
    hazard: Hazard,
    where: Site,
    message: str,
    help_text: str,
    sites: Iterable[Site],
) -> Finding:
    """A finding about a value that is gone when backward needs it."""
    read_line = location(hazard.reader.site)
    related = [
        Related(read_line, f"read here by `{hazard.reader.label}`, whose backward needs the value"),
        *allocation_note(hazard.buffer),
        *backward_notes(graph),
    ]
    place = location(where)
    overwrite = location(hazard.writer.site)
    if overwrite != place:
        related.insert(1, Related(overwrite, f"overwritten here by `{hazard.writer.label}`"))
    return Finding(
        rule,
        message,
        place,
        tuple(related),
        spelled(hazard.buffer, hazard.read),
        help_text,
        ProbeRequest(Counterfactual.RESTORE_VALUES, statements(sites)),
    )


def reset_finding(graph: ScopeGraph, rule: str, reset: Reset, action: str, help_text: str) -> Finding:
    """A finding about an unrecorded overwrite that leaves the adjoint of the old contents in place."""
    name = spelled(reset.buffer, reset.written)
    message = (
        f"`{name}` is {action} by `{reset.event.label}`{turn_words(reset.event)}, which the tape does not "
        f"record: the adjoint of its new contents is counted again in the earlier `{reset.earlier.label}`"
    )
    related = [
        Related(location(reset.earlier.site), f"written on the tape before, by `{reset.earlier.label}`")
    ]
    if reset.later is not None:
        related.append(Related(location(reset.later.site), f"used afterwards by `{reset.later.label}`"))
    return Finding(
        rule,
        message,
        location(reset.event.site),
        (*related, *allocation_note(reset.buffer), *backward_notes(graph)),
        name,
        help_text,
        ProbeRequest(Counterfactual.RESTORE_VALUES, statements([reset.event.statement])),
    )


def statements(sites: Iterable[Site]) -> tuple[Location, ...]:
    """Host statements as whole-line regions, sorted, each once."""
    return tuple(sorted({location(s) for s in sites}))


def group_sites(hazards: Iterable[Hazard], chosen: Hazard) -> list[Site]:
    """The statements of all overwrites that belong to the same fault as ``chosen``."""
    return [
        h.writer.statement
        for h in hazards
        if h.buffer.site == chosen.buffer.site or h.writer.site == chosen.writer.site
    ]
