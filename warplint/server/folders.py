"""What is known of a folder: its findings, and the verdicts that programs have given them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplint.model import Program, ProgramRow, Result, Verdict, from_plain
from warplint.server.requests import Worker, WorkerError
from warplint.server.settings import Settings

_FINISHES = 2.0
"""Seconds after which a check is left to finish: a large tree is read once, and then remembered."""


@dataclass(frozen=True)
class Proof:
    """What the programs of one request told, and the texts of which that is true."""

    results: tuple[Result, ...]
    rows: tuple[ProgramRow, ...]
    digests: Mapping[str, str]

    def holds(self, digests: Mapping[str, str]) -> bool:
        """Whether no file of the programs has changed."""
        return all(digests.get(name) == digest for name, digest in self.digests.items())


@dataclass
class Folder:
    """One root that is checked as `warplint check` would check it if it were started there."""

    root: Path
    paths: tuple[str, ...] = (".",)
    settings: Settings = field(default_factory=Settings)
    allowed: bool = False
    """The user has said that programs may be run, in this session."""
    findings: tuple[Result, ...] = ()
    programs: tuple[Program, ...] = ()
    proofs: list[Proof] = field(default_factory=list)
    problem: str | None = None
    told: str | None = None
    """The problem that the user has been told of."""
    show_dismissed: bool = False

    @property
    def alone(self) -> bool:
        """Whether it stands for one file that lies outside all folders."""
        return self.paths != (".",)

    def request(self, buffers: Mapping[Path, str]) -> dict[str, Any]:
        return {
            "root": str(self.root),
            "paths": list(self.paths),
            "settings": dict(self.settings.table),
            "buffers": {str(path): text for path, text in buffers.items()},
            "watch": sorted({name for proof in self.proofs for name in proof.digests}),
        }

    def take(self, answer: Mapping[str, Any]) -> None:
        """Take over what a check has found; verdicts on texts that have changed are dropped."""
        self.problem = answer.get("problem")
        if self.problem is not None:
            self.findings = ()
            self.proofs.clear()
            return
        self.findings = from_plain(tuple[Result, ...], answer["results"])
        self.programs = from_plain(tuple[Program, ...], answer["programs"])
        self.show_dismissed = answer["show_dismissed"]
        digests = answer["digests"]
        self.proofs = [proof for proof in self.proofs if proof.holds(digests)]

    def results(self) -> tuple[Result, ...]:
        """The findings, each with the heaviest verdict that a program has given it."""
        return decided(self.findings, self.proofs, dismissed=self.show_dismissed)

    def reaching(self, file: str) -> list[Program]:
        """The programs that a file is a part of."""
        return [program for program in self.programs if file in program.closure or file == program.file]

    def display(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def absolute(self, file: str) -> Path:
        return self.root / file


def decided(
    findings: Iterable[Result], proofs: Iterable[Proof], *, dismissed: bool = False
) -> tuple[Result, ...]:
    """Findings with the verdicts of ``proofs``, and what only a run could see."""
    shown = {_key(result): result for result in findings}
    told: dict[Any, Result] = {}
    for proof in proofs:
        for result in proof.results:
            if result.program is None:
                continue  # of a finding that none of the programs was asked about
            known = told.get(_key(result))
            if known is None or known.verdict.weight < result.verdict.weight:
                told[_key(result)] = result
    shown.update(told)
    kept = (r for r in shown.values() if dismissed or r.verdict is not Verdict.DISMISSED)
    return tuple(sorted(kept, key=lambda result: result.sort_key))


def _key(result: Result) -> Any:
    place = result.location
    own = result.message if result.rule.startswith("WL9") else ""
    return result.rule, place.file, place.line, place.column, own


class Checker:
    """Keeps the findings of a folder up to date: the newest text wins, the editor never waits."""

    def __init__(
        self,
        folder: Folder,
        worker: Worker,
        unsaved: Callable[[], Mapping[Path, str]],
        after: Callable[[Folder], Awaitable[None]],
    ) -> None:
        self.folder = folder
        self._worker = worker
        self._unsaved = unsaved
        self._after = after
        self._wanted = 0
        self._done = 0
        self._started: float | None = None
        self._task: asyncio.Task[None] | None = None

    def touch(self, delay: float = 0.0) -> None:
        """Something has changed: check again, after a pause in the typing."""
        self._wanted += 1
        if self._task is not None and not self._task.done():
            if self._started is not None and time.monotonic() - self._started > _FINISHES:
                return  # the loop sees that there is something newer
            self._task.cancel()
        self._started = None
        self._task = asyncio.get_running_loop().create_task(self._run(delay))

    async def current(self) -> None:
        """Wait until what is known is true of the texts as they are."""
        while self._done != self._wanted and self._task is not None:
            task = self._task
            await asyncio.wait({task})
            if task is self._task and self._done != self._wanted:
                return  # stopped

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, delay: float) -> None:
        await asyncio.sleep(delay)
        while self._done != self._wanted:
            wanted = self._wanted
            self._started = time.monotonic()
            try:
                answer = await self._worker.ask(self.folder.request(self._unsaved()))
            except WorkerError as error:
                answer = {"problem": str(error)}
            finally:
                self._started = None
            if wanted == self._wanted:
                self.folder.take(answer)
                self._done = wanted
                with contextlib.suppress(ConnectionError):
                    await self._after(self.folder)
