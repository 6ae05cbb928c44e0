"""The dataflow graph of a tape scope as somebody would draw it, with the user's own names and lines.

Arrays are drawn once for each version of their contents, operations once for each time they ran;
the later turns of a loop are folded into one box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from warplint.model import Location
from warplint.static.graph import ScopeGraph, Version
from warplint.static.host.events import Binding, Event
from warplint.static.host.values import View

__all__ = ["Edge", "Node", "Picture", "draw"]


@dataclass(frozen=True)
class Node:
    """An array's contents, an operation, the folded turns of one, or the backward call."""

    id: str
    kind: str
    """array, view, operation, more or backward."""
    name: str
    """As the user wrote it."""
    notes: tuple[str, ...] = ()
    place: Location | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        where = (f"{self.place.file}:{self.place.line}",) if self.place is not None else ()
        return (self.name, *where, *self.notes)


@dataclass(frozen=True)
class Edge:
    """``kind``: read, needs value (its backward step uses the value), write, accumulate, keep (part of
    an array stays as it was), alias, seed, or overwrites (a value that a backward step still needs)."""

    source: str
    target: str
    kind: str


@dataclass
class Picture:
    """One tape scope."""

    title: str
    place: Location
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def draw(graph: ScopeGraph, turns: int = 3) -> Picture:
    """The picture of a scope with the first ``turns`` turns of its loops."""
    return _Drawing(graph, turns).picture


class _Drawing:
    def __init__(self, graph: ScopeGraph, turns: int) -> None:
        self.graph = graph
        site = graph.recording.site
        place: Location = site.module.location(site.node)
        self.picture = Picture(f"tape entered at {place.file}:{place.line}", place)
        self._nodes: dict[Any, Node] = {}
        self._edges: dict[Edge, None] = {}
        for event, before, after in graph.operations:
            if all(t < turns for t in event.turns):
                self._operation(("event", event.number), event, before, after)
        for event, before, after in graph.operations:
            if not all(t < turns for t in event.turns):
                self._fold(event, before, after)
        self._backwards()
        self._hazards()
        self.picture.nodes = list(self._nodes.values())
        self.picture.edges = list(self._edges)

    def _node(self, key: Any, letter: str, **what: Any) -> Node:
        if key not in self._nodes:
            number = sum(1 for node in self._nodes.values() if node.id.startswith(letter))
            self._nodes[key] = Node(f"{letter}{number}", **what)
        return self._nodes[key]

    def _edge(self, source: Node, target: Node, kind: str) -> None:
        self._edges.setdefault(Edge(source.id, target.id, kind))

    def _array(self, version: Version) -> Node:
        buffer = self.graph.buffers[version.buffer]
        notes = []
        if self.graph.versions_of(buffer) > 1:
            notes.append(f"version {version.number}")
        if buffer.element == "int":
            notes.append("integers")
        elif buffer.requires_grad is False:
            notes.append("no gradient")
        place = None if buffer.origin == "parameter" else _place(buffer.site)
        name = buffer.name or buffer.origin or "array"
        return self._node(version, "a", kind="array", name=name, notes=tuple(notes), place=place)

    def _seen(self, version: Version, binding: Binding) -> Node:
        """The array, or the part of it that was handed to the operation."""
        whole = self._array(version)
        if not isinstance(binding.array, View):
            return whole
        name = binding.text
        if name == whole.name or not name:
            name = f"part of {whole.name}"
        part = self._node((version, binding.region, name), "v", kind="view", name=name)
        self._edge(whole, part, "alias")
        return part

    def _operation(
        self, key: Any, event: Event, before: dict[str, Version], after: dict[str, Version]
    ) -> Node:
        notes = [f"turn {'.'.join(str(t + 1) for t in event.turns)}"] if event.turns else []
        if not event.recorded:
            notes.append("not recorded")
        node = self._node(
            key, "o", kind="operation", name=event.label, notes=tuple(notes), place=_place(event.site)
        )
        self._connect(node, event, before, after)
        return node

    def _fold(self, event: Event, before: dict[str, Version], after: dict[str, Version]) -> None:
        node = self._node(
            ("more", event.site),
            "o",
            kind="more",
            name=event.label,
            notes=("later turns",),  # how many is not known: of a long loop only both ends are read
            place=_place(event.site),
        )
        shown = {path: v for path, v in before.items() if v in self._nodes}
        made = {path: v for path, v in after.items() if v in self._nodes or self._is_last(v)}
        self._connect(node, event, shown, made)

    def _is_last(self, version: Version) -> bool:
        return version in self.graph.objectives

    def _connect(
        self, node: Node, event: Event, before: dict[str, Version], after: dict[str, Version]
    ) -> None:
        effect, bindings = event.effect, event.bindings
        for path in sorted({a.path for a in effect.reads} & before.keys()):
            kind = "needs value" if event.recorded and effect.needs_value(path) else "read"
            self._edge(self._seen(before[path], bindings[path]), node, kind)
        for path in sorted(after):
            kinds = {a.kind.value for a in effect.writes_of(path)}
            made = self._array(after[path])
            self._edge(node, made, "accumulate" if kinds == {"accumulate"} else "write")
            if path in before and self.graph.keeps(before[path], after[path]):
                self._edge(self._array(before[path]), made, "keep")

    def _backwards(self) -> None:
        for backward in self.graph.recording.backwards:
            node = self._node(
                backward.site, "b", kind="backward", name="backward", place=_place(backward.site)
            )
            for version in sorted(self.graph.objectives, key=lambda v: (v.buffer, v.number)):
                if backward.objective is not None and any(
                    b.number == version.buffer for b in backward.objective
                ):
                    self._edge(node, self._array(version), "seed")

    def _hazards(self) -> None:
        for hazard in self.graph.hazards:
            reader = self._nodes.get(("event", hazard.reader.number))
            writer = self._nodes.get(("event", hazard.writer.number))
            if reader is None or writer is None:
                continue
            version = self.graph.version_read(hazard.reader, hazard.need.read.path)
            if version in self._nodes:
                self._edge(writer, self._nodes[version], "overwrites")


def _place(site: Any) -> Location:
    found: Location = site.module.location(site.node)
    return found
