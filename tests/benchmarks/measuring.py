"""What every benchmark here shares: rows of a table, and whole commands timed from shell to exit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(sys.executable).parent


@dataclass(frozen=True)
class Row:
    """One line of the table; a ``goal`` is an upper bound."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    detail: str = ""

    @property
    def met(self) -> bool:
        return self.goal is None or self.value <= self.goal

    def __str__(self) -> str:
        value = f"{self.value:,.0f}" if abs(self.value) >= 1000 else f"{self.value:.3g}"
        goal = "" if self.goal is None else f"goal {self.goal:g}" + ("" if self.met else "  MISSED")
        return f"{self.name:<52}{value + ' ' + self.unit:>12}  {goal:<18}{self.detail}".rstrip()


@dataclass(frozen=True)
class Spent:
    """One command from start to exit: seconds of wall time, MiB at its largest process, and the
    processor time of all its processes, which other work on the machine changes least."""

    seconds: float
    mebibytes: float
    processor: float


def spent(
    words: Sequence[str], directory: Path, environment: Mapping[str, str], output: Path | None = None
) -> Spent:
    """Run a command once; ends the benchmark if it failed to do its work (exit status above 1)."""
    start = time.perf_counter()
    with open(output or os.devnull, "wb") as sink, open(os.devnull, "wb") as silent:
        process = subprocess.Popen(words, cwd=directory, env=dict(environment), stdout=sink, stderr=silent)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)} failed with {process.returncode}")
    seconds = time.perf_counter() - start
    return Spent(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def script(name: str) -> str:
    """A console script of the environment that runs the benchmark."""
    return str(SCRIPTS / name)
