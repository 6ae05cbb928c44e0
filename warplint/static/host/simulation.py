"""Simulation libraries: a step reads one state and writes another."""

from __future__ import annotations

from typing import Any

import libcst as cst

from warplint.static.host import events
from warplint.static.host.events import Binding
from warplint.static.host.launches import Launches
from warplint.static.host.values import (
    UNKNOWN,
    Buffer,
    External,
    Placeholder,
)

__all__ = ["Simulation"]

_STATE_FIELDS = ("particle_q", "particle_qd", "body_q", "body_qd", "joint_q", "joint_qd")


class Simulation(Launches):
    """Newton, ``warp.sim`` and mujoco_warp, as far as states and solvers go."""

    def _simulation_call(self, callee: External, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        arrays = [a for a in args if isinstance(a, Placeholder) and a.library]
        if callee.last in ("eval_fk", "eval_ik") and arrays:
            return None
        return Placeholder(callee.last, "simulation")

    def _simulation_method(
        self, receiver: Placeholder, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        if name in ("step", "simulate"):
            states = [a for a in (*args, *kwargs.values()) if isinstance(a, Placeholder) and a.library]
            offset = 1 if name == "simulate" and len(states) > 2 else 0
            if len(states) >= 2 + offset:
                self._simulation_step(name, states[offset], states[offset + 1], node)
            return None
        if name == "clear_forces":
            for field in ("particle_f", "body_f"):
                array = self.as_array(self.child(receiver, field, f"{receiver.name}.{field}"))
                assert array is not None
                if receiver.children[field].buffer in self._touched():
                    self._emit_reset("clear_forces()", array, node)
            return None
        if name in ("state", "control", "contacts", "finalize", "collide"):
            return Placeholder(name, receiver.library)
        return UNKNOWN

    def _touched(self) -> set[Buffer]:
        return {b.buffer for r in self.active for e in r.events for b in e.bindings.values()}

    def _simulation_step(self, name: str, before: Placeholder, after: Placeholder, node: Any) -> None:
        reads = tuple(f"in.{f}" for f in _STATE_FIELDS)
        writes = tuple(f"out.{f}" for f in _STATE_FIELDS)
        effect = events.library_effect(name, self.site(node), reads, writes)
        call = node if isinstance(node, cst.Call) else None
        nodes = [a.value for a in call.args] if call is not None else []
        bindings: dict[str, Binding] = {}
        for prefix, state in (("in", before), ("out", after)):
            source = next((n for n in nodes if self.evaluate(n) is state), None)
            mark = self.origin(source) if source is not None else None
            text = self.frame.module.source.code(source) if source is not None else state.name
            for field in _STATE_FIELDS:
                held = self.child(state, field, f"{state.name}.{field}")
                array = self.as_array(held)
                if array is not None:
                    bindings[f"{prefix}.{field}"] = self._binding(array, f"{text}.{field}", mark)
        self.emit("library", effect, bindings, node)
