"""How the buffer of a hazard came to be written: shared by the rules about time stepping."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warplint.static.graph import Hazard, ScopeGraph

__all__ = ["is_aliased", "is_ping_pong", "is_unrecorded"]


def is_unrecorded(hazard: Hazard) -> bool:
    """Overwritten by something the tape does not see."""
    return hazard.writer.kind in ("reset", "copy") and not hazard.writer.recorded


def is_aliased(hazard: Hazard) -> bool:
    """Two names that are meant to be different states hold one array."""
    writer, number = hazard.writer, hazard.buffer.number
    if writer.kind not in ("launch", "library"):
        return False
    read_paths = {
        a.path
        for a in writer.effect.reads
        if a.path in writer.bindings and writer.bindings[a.path].buffer.number == number
    }
    written = {
        a.path
        for a in writer.effect.writes
        if a.path in writer.bindings and writer.bindings[a.path].buffer.number == number
    }
    if read_paths - written and hazard.write.path not in read_paths:
        return _same_part(hazard, read_paths - written)
    one, two = hazard.read.slot, hazard.written.slot
    return one is not None and two is not None and one[0] == two[0] and one[1] != two[1]


def _same_part(hazard: Hazard, paths: set[str]) -> bool:
    return any(hazard.writer.bindings[p].region == hazard.written.region for p in paths)


def is_ping_pong(graph: ScopeGraph, hazard: Hazard) -> bool:
    """The overwriting kernel has taken this buffer as its input before: buffers take turns."""
    writer = hazard.writer
    if writer.kind not in ("launch", "library"):
        return False
    for event in graph.events:
        if event is writer:
            return False
        if event.effect.site != writer.effect.site or event.effect.name != writer.effect.name:
            continue
        written = {a.path for a in event.effect.writes}
        for access in event.effect.reads:
            binding = event.bindings.get(access.path)
            if binding is None or access.path == hazard.write.path or access.path in written:
                continue
            if binding.buffer is hazard.buffer:
                return True
    return False
