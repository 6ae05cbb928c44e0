"""Runs small programs through the runtime and hands back what it told.

All programs share one set of kernels, so that Warp compiles them once for the whole test run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import warplint.probe

RUNTIME = Path(warplint.probe.__file__).parent / "runtime"

KERNELS = """
import numpy as np
import warp as wp
import warp.optim


@wp.kernel
def square(x: wp.array(dtype=float), scale: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = scale * x[i] * x[i]


@wp.kernel
def product(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = x[i] * y[i]


@wp.kernel
def grow(x: wp.array(dtype=float), rate: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] + 0.1 * rate[0] * x[i] * x[i]


@wp.kernel
def misfit(x: wp.array(dtype=float), target: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - target
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(x: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    x[i] = x[i] - rate * g[i]


@wp.kernel
def root(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.sqrt(x[i]))


def zeros(n, grad=True):
    return wp.zeros(n, dtype=float, requires_grad=grad)


def array(values):
    return wp.array(values, dtype=float, requires_grad=True)

"""


def write(directory: Path, body: str, name: str = "program.py") -> Path:
    """A program of the shared kernels and ``body``."""
    path = directory / name
    path.write_text(KERNELS + body, encoding="utf-8")
    return path


def check(directory: Path, files: Mapping[str, str], *options: str) -> tuple[int, dict[str, Any]]:
    """Exit status and report of ``warplint check`` on ``files``, which are written to ``directory``."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from warplint.cli.main import run; run()", "check", "."),
            *("--format", "json", *options),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def run(
    program: Path,
    *,
    requests: list[dict[str, Any]] | None = None,
    overrides: dict[str, dict[str, str]] | None = None,
    seconds: float = 120,
    tracker: bool = False,
    module: str | None = None,
    **more: Any,
) -> Told:
    """Runs the runtime on ``program``, outside the sandbox, and collects its messages."""
    spec = {
        "program": str(program),
        "directory": str(program.parent),
        "root": str(program.parent),
        "arguments": [],
        "seconds": seconds,
        "requests": requests or [],
        "overrides": overrides or {},
        "tracker": tracker,
        "module": module,
        **more,
        "import_root": str(program.parents[module.count(".")] if module else program.parent),
    }
    order = program.parent / "order.json"
    order.write_text(json.dumps(spec), encoding="utf-8")
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, str(RUNTIME / "main.py"), str(order)],
        pass_fds=[write_end],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "WARPLINT_REPORT_FD": str(write_end),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
    )
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        messages = [json.loads(line) for line in pipe]
    _, errors = process.communicate(timeout=30)
    return Told(messages, errors.decode(errors="replace"))


class Told:
    """The messages of one run."""

    def __init__(self, messages: list[dict[str, Any]], errors: str) -> None:
        self.messages = messages
        self.errors = errors

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [m for m in self.messages if m["type"] == kind]

    @property
    def episodes(self) -> list[dict[str, Any]]:
        assert not self.of("internal-error"), self.of("internal-error")[0]["traceback"]
        faults = [m["structure"] for m in self.messages if m.get("structure", {}).get("ending") == "fault"]
        assert not faults, faults[0]["error"]
        measured = self.of("measured")
        assert measured, f"nothing was measured: {self.messages}"
        return measured[0]["episodes"]

    @property
    def outcomes(self) -> dict[str, list[str]]:
        """Parameter → outcome of each measured iteration, in order."""
        found: dict[str, list[str]] = {}
        for episode in sorted(self.episodes, key=lambda e: e["iteration"]):
            found.setdefault(episode["parameter"], []).append(episode["outcome"])
        return found

    @property
    def confirmed(self) -> list[tuple[str, int]]:
        """(kind of cause, line) of every confirmed cause."""
        return sorted(
            {(c["kind_of_cause"], c["stack"][0][1]) for a in self.of("attribution") for c in a["confirmed"]}
        )
