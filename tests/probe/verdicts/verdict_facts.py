"""Facts of imagined runs, small enough to read: one parameter, one direction a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warplint.model import Counterfactual, Finding, Location, ProbeRequest, Program
from warplint.probe.facts import Facts, Paths

ROOT = Path("/project")
PATHS = Paths(ROOT, ROOT)
PROGRAM = Program("train.py", closure=("sim.py", "train.py"))


def check(ad: float, fd: float, outcome: str, direction: str = "gradient") -> dict[str, Any]:
    error = abs(ad - fd) / abs(fd) if fd else 0.0
    return {
        "direction": direction,
        "outcome": outcome,
        "ad": ad,
        "fd": fd,
        "noise": 1e-4,
        "step": 0.01,
        "relative_error": error,
    }


def episode(iteration: int, *checks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    outcomes = [c["outcome"] for c in checks]
    outcome = "differs" if "differs" in outcomes else (outcomes[0] if outcomes else "inconclusive: nothing")
    row = {
        "parameter": "w",
        "place": ["train.py", 3],
        "variable": "0",
        "components": 1,
        "shape": [4],
        "dtype": "float32",
        "iteration": iteration,
        "outcome": outcome,
        "problem": None,
        "objective": "loss (train.py:4)",
        "objective_kind": "loss",
        "backward": [["train.py", 20]],
        "backward_calls": 1,
        "finite": True,
        "zero": False,
        "stale_view": False,
        "constant": [],
        "held": [],
        "checks": list(checks),
        "replay": {},
    }
    return {**row, **changes}


def overwrite(line: int, *, file: str = "sim.py", kernel: str = "step", own: bool = False) -> dict[str, Any]:
    """A cause: `state` overwritten at a line by a kernel, read before by another launch."""
    return {
        "key": ["overwrite", file, str(line), kernel],
        "key_parts": ["overwrite", file, line, kernel],
        "kind_of_cause": "overwrite",
        "kind": "launch",
        "stack": [[file, line, "simulate"], ["train.py", 12, "main"]],
        "kernel": kernel,
        "kernel_file": file,
        "kernel_line": 1,
        "recorded": True,
        "on_tape": True,
        "aliased": False,
        "buffer": "state",
        "buffers": ["state"],
        "readers": [{"stack": [[file, 30, "simulate"]], "kernel": "forces", "argument": "x", "own": own}],
        "what": ["value"],
        "count": 3,
        "alone": 0.0003,
        "leave_one_out": 0.2,
    }


def attribution(
    *,
    causes: list[dict[str, Any]],
    confirmed: list[dict[str, Any]],
    outcome: str = "differs",
    **changes: Any,
) -> dict[str, Any]:
    row = {
        "parameter": "w",
        "place": ["train.py", 3],
        "variable": "0",
        "iteration": 1,
        "outcome": outcome,
        "before": 0.2,
        "after": 0.0003 if confirmed else 0.2,
        "resolved": bool(confirmed),
        "changed": False,
        "causes": causes,
        "confirmed": confirmed,
        "problem": None,
    }
    return {**row, **changes}


def facts(*episodes: dict[str, Any], attributions: tuple[dict[str, Any], ...] = ()) -> Facts:
    return Facts(
        warp="1.19.0",
        device="cpu",
        started=True,
        episodes=list(episodes),
        attributions=list(attributions),
        executed={("sim.py", 10), ("sim.py", 30), ("train.py", 3), ("train.py", 20)},
        forward_passes=40,
        finished=True,
    )


def finding(line: int, *, file: str = "sim.py", rule: str = "WL101") -> Finding:
    place = Location(file, line, 5)
    return Finding(
        rule=rule,
        message=f"`state` is overwritten on line {line}",
        location=place,
        request=ProbeRequest(Counterfactual.RESTORE_VALUES, sites=(place,)),
    )
