"""WL203 not-recorded: an operation between the parameter and the objective is on no tape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related
from warplint.static.said import says_meant

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.host.events import Binding, Event

RULE = "WL203"


@check(RULE, order=80)
def not_recorded(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Launches, copies and native sums of active values that no tape sees."""
    if not graph.objective_known or graph.recording.custom:
        return
    for event, written, why, advice in (*_on_the_tape(graph), *_before(graph), *_behind(graph)):
        if not claims.first(RULE, event.site):
            continue
        name = spelled(written.buffer, written)
        yield Finding(
            RULE,
            f"`{name}` is computed by `{event.label}` {why}: the gradient stops there",
            location(event.site),
            (*_readers(graph, written), *backward_notes(graph)),
            name,
            advice,
            ProbeRequest(Counterfactual.RECORD, statements([event.statement])),
        )


_Cut = tuple["Event", "Binding", str, str]


def _on_the_tape(graph: ScopeGraph) -> Iterator[_Cut]:
    for index, event in enumerate(graph.events):
        if event.recorded or event.kind != "launch" or not event.effect.backward:
            continue
        if graph.passes(index):
            native = event.label.startswith("wp.utils")
            why = "natively, which no tape records" if native else "without a record on the tape"
            yield (
                event,
                _output(event),
                why,
                "use a kernel instead" if native else "launch it with wp.launch() on the tape",
            )


def _before(graph: ScopeGraph) -> Iterator[_Cut]:
    """What ran before the tape was entered, from optimized arrays to arrays that the tape reads."""
    active: dict[int, list[tuple[Event, Binding]]] = {}
    for event in graph.recording.prelude:
        for path, sources in event.effect.flows.items():
            if path not in event.bindings or not event.bindings[path].differentiable:
                continue
            written = event.bindings[path]
            chain: list[tuple[Event, Binding]] = []
            for source in sorted(sources):
                binding = event.bindings.get(source)
                if binding is None or binding.buffer is written.buffer or not binding.differentiable:
                    continue
                if binding.buffer.number in active:
                    chain = active[binding.buffer.number]
                elif not (binding.buffer.consumed and binding.buffer.requires_grad is True):
                    continue
                active[written.buffer.number] = [*chain, (event, written)]
                break
    for number, chain in active.items():
        buffer = graph.buffers.get(number)
        if buffer is None or buffer.consumed or not graph.starts_useful(buffer):
            continue
        if any(_again_on_the_tape(graph, event, written) for event, written in chain):
            continue
        if any(_follows(event, written) or _is_meant(event, written) for event, written in chain):
            continue
        for event, written in chain:
            yield (
                event,
                written,
                "before the tape begins to record",
                "move it into the tape, or say in a comment that its result is detached",
            )


def _is_meant(event: Event, written: Binding) -> bool:
    """Whether the code says that what is computed is held constant (a target, a detached value)."""
    return says_meant(event.site, event.call_path, written.buffer.name)


def _follows(event: Event, written: Binding) -> bool:
    """Whether a launch blends a value into an array without gradient: a moving average."""
    paths = [path for path, b in event.bindings.items() if b.buffer is written.buffer]
    itself = any(event.effect.reads_of(p) and event.effect.writes_of(p) for p in paths)
    return itself and written.requires_grad is False and not event.effect.ordered_needs


def _again_on_the_tape(graph: ScopeGraph, event: Event, written: Binding) -> bool:
    """Whether the tape sees the same operation once more: this was an earlier evaluation.

    The same array is written again, or the very same call is (checkpointing by hand records again
    what ran before to find where the segments start).
    """
    return any(
        e.recorded
        and e.effect is event.effect
        and (e.site == event.site or any(b.buffer is written.buffer for b in e.bindings.values()))
        for e in graph.events
    )


def _behind(graph: ScopeGraph) -> Iterator[_Cut]:
    """The objective computed after the tape was left."""
    seeded = {b.number for back in graph.recording.backwards for b in back.objective or ()}
    if any(v in graph.wished_varied for v in graph.objectives):
        return
    for event in graph.recording.changes:
        if event.kind != "launch" or event.other_tape:
            continue
        for path, sources in event.effect.flows.items():
            written = event.bindings.get(path)
            if written is None or written.buffer.number not in seeded:
                continue
            if any(s in event.bindings and graph.ends_varied(event.bindings[s].buffer) for s in sources):
                yield event, written, "after the tape was left", "move it into the tape"
                break


def _output(event: Event) -> Binding:
    return next(event.bindings[p] for p in sorted(event.effect.flows) if p in event.bindings)


def _readers(graph: ScopeGraph, written: Binding) -> Iterator[Related]:
    for event in graph.events:
        if any(
            b.buffer is written.buffer and event.effect.reads_of(path) for path, b in event.bindings.items()
        ):
            yield Related(location(event.site), f"used here by `{event.label}`")
            return
