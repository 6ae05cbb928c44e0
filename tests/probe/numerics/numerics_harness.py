"""Runs generated programs through the probe's runtime and counts what it says about them.

The programs are trusted, so they run without the sandbox: a server process imports Warp and the
runtime once, and every program is a fork of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from numerics_programs import SCALED, RandomProgram

from warplint.model import Program
from warplint.probe.facts import Facts, Paths
from warplint.probe.verdicts import judge_program

REPOSITORY = Path(__file__).resolve().parents[3]
RUNTIME = REPOSITORY / "warplint" / "probe" / "runtime"
SECONDS = 60.0
"""Time limit of one program."""

_SERVER = """
import json, os, sys
sys.path.insert(0, RUNTIME)
import bootstrap
main = bootstrap.load("main")
import _warplint_runtime.session
for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.environ["WARPLINT_REPORT_FD"] = str(os.open(order["messages"], os.O_WRONLY | os.O_CREAT, 0o600))
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        import time
        main._STARTED = time.monotonic()
        try:
            main.main(order["spec"])
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    print("done", flush=True)
"""


@dataclass
class Run:
    """What the probe said about one program."""

    program: RandomProgram
    status: str
    """``verified``, ``wrong``, ``inconclusive`` or ``blocked``."""
    reason: str = ""
    forward_passes: int = 0
    seconds: float = 0.0
    facts: Facts = field(default_factory=Facts)


class _Server:
    """A process that has Warp and the runtime loaded, and forks for every program."""

    def __init__(self) -> None:
        code = _SERVER.replace("RUNTIME", repr(str(RUNTIME)))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
        )

    def run(self, program: RandomProgram, directory: Path) -> Run:
        file = directory / f"{program.name}.py"
        file.write_text(program.source, encoding="utf-8")
        spec, messages = file.with_suffix(".spec"), file.with_suffix(".messages")
        spec.write_text(
            json.dumps(
                {
                    "program": str(file),
                    "directory": str(directory),
                    "root": str(directory),
                    "seconds": SECONDS,
                }
            ),
            encoding="utf-8",
        )
        began = time.monotonic()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"spec": str(spec), "messages": str(messages)}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the server died"
        seconds = time.monotonic() - began
        facts = Facts()
        text = messages.read_text(encoding="utf-8") if messages.exists() else ""
        for line in text.splitlines():
            facts.take(json.loads(line))
        judged = judge_program(Program(file.name), (), facts, Paths(directory, directory), "python")
        row = judged.row
        return Run(program, row.status.value, row.reason or "", facts.forward_passes, seconds, facts)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def run_programs(
    programs: Iterable[RandomProgram], *, jobs: int = 1, tell: Callable[[Run], None] | None = None
) -> list[Run]:
    """Runs all programs, in order; ``tell`` hears of each as it ends."""
    programs = list(programs)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        shares = [programs[n::jobs] for n in range(jobs)]

        def work(number: int) -> list[Run]:
            directory = Path(folder) / str(number)
            directory.mkdir()
            server = _Server()
            try:
                runs = []
                for program in shares[number]:
                    runs.append(server.run(program, directory))
                    if tell is not None:
                        tell(runs[-1])
                return runs
            finally:
                server.close()

        found = [run for runs in pool.map(work, range(jobs)) for run in runs]
    order = {p.name: n for n, p in enumerate(programs)}
    return sorted(found, key=lambda run: order[run.program.name])


def warm_up(programs: Iterable[RandomProgram]) -> None:
    """Compiles the kernels of every family, which takes longer than a probe may."""
    first: dict[tuple[str, bool], RandomProgram] = {}
    for program in programs:
        first.setdefault((program.family, program.variant == SCALED), program)
    for program in first.values():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{program.name}.py"
            file.write_text(program.source, encoding="utf-8")
            subprocess.run([sys.executable, str(file)], check=True, stdout=subprocess.DEVNULL)


def explain(run: Run) -> Iterator[str]:
    """One line for each comparison of a run, for a human who looks into it."""
    p = run.program
    yield f"{p.name} ({p.loop}{', kinks' if p.kinks else ''}): {run.status} {run.reason}"
    for row in run.facts.episodes:
        yield (
            f"  {row['parameter']} {row['variable']} iteration {row['iteration']}: {row['outcome']}, "
            f"objective {row['value']:.6g}, sigma {row['sigma']:.2g}"
        )
        for c in row["checks"]:
            yield (
                f"    {c['direction']:<30} ad {c['ad']:.6g} fd {c['fd']:.6g} +- {c['noise']:.2g} "
                f"h {c['step']:.1g} rel {c['relative_error']:.2g} {c['outcome']}"
            )
