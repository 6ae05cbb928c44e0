"""Tapes and what their backward pass begins with."""

from __future__ import annotations

from typing import Any

from warplint.static.host.events import Backward
from warplint.static.host.simulation import Simulation
from warplint.static.host.values import (
    Buffer,
    Dict,
    Tape,
    base_of,
)

__all__ = ["Tapes"]


class Tapes(Simulation):
    """Recording, backward calls with their objective, zero and reset."""

    def _tape(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        self.events += 1
        return Tape(self.events, self.site(node))

    def _tape_method(self, tape: Tape, name: str, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if name in ("__enter__", "__exit__"):
            if name == "__enter__":
                return self.enter(tape, node)
            self.leave(tape, node)
            return None
        if name == "record_func":
            for recorded in self.recordings:
                recorded.custom = recorded.custom or recorded.tape is tape
        if name in ("zero", "reset"):
            self.lived(name, node, tape=tape)
        if name == "reset":
            for recorded in self.recordings:
                recorded.closed = recorded.closed or recorded.tape is tape
            self.waiting = [r for r in self.waiting if not r.closed]
        if name != "backward":
            return None
        recording = next((r for r in reversed(self.recordings) if r.tape is tape), None)
        if recording is None:
            return None
        objective = self._objective(args, kwargs)
        bare = not args and not kwargs and not self.seeds and not self.adjoints_met
        recording.backwards.append(Backward(self.site(node), objective, dict(self.guards), bare))
        self.lived("backward", node, tape=tape, recording=recording)
        self.seeds, self.adjoints_met = {}, 0
        self.prelude = []
        return None

    def _objective(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[Buffer, ...] | None:
        loss = args[0] if args else kwargs.get("loss")
        grads = args[1] if len(args) > 1 else kwargs.get("grads")
        found: list[Buffer] = []
        known = True
        if loss is not None:
            base = base_of(self.as_array(loss))
            known = base is not None
            found.extend([base] if base is not None else [])
        if isinstance(grads, Dict):
            for key in grads.items:
                base = base_of(self.as_array(key))
                if base is not None:
                    found.append(base)
                else:
                    known = False
            known = known and grads.exact
        elif grads is not None:
            known = False
        if loss is None and grads is None:
            found.extend(self.seeds.values())
            known = bool(found)
        return tuple(found) if known else None
