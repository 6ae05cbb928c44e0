"""How the buffer of a hazard came to be written: shared by the rules about time stepping."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warplint.static.graph import Hazard, ScopeGraph

__all__ = ["changed_off_tape", "is_aliased", "is_copy", "is_ping_pong", "is_reset"]


def is_reset(hazard: Hazard) -> bool:
    """Overwritten on the tape by ``zero_``, ``fill_`` or values of the host: the tape does not see it."""
    return hazard.writer.kind == "reset" and not hazard.writer.beside


def is_copy(hazard: Hazard) -> bool:
    """Overwritten on the tape with the contents of another array, recorded or not."""
    return hazard.writer.kind == "copy" and not hazard.writer.beside


def changed_off_tape(hazard: Hazard) -> bool:
    """Overwritten beside the tape: after its block, unrecorded, or through host memory."""
    writer = hazard.writer
    return writer.beside or (writer.kind == "launch" and not writer.recorded)


def is_aliased(hazard: Hazard) -> bool:
    """Two names that are meant to be different states hold one array."""
    writer, number = hazard.writer, hazard.buffer.number
    if writer.kind not in ("launch", "library") or changed_off_tape(hazard):
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
    if writer.kind not in ("launch", "library") or changed_off_tape(hazard):
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
