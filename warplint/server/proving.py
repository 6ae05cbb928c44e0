"""Proving: the programs of a file are run in the background, and what they told is shown."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warplint.model import ProgramRow, Result, Verdict, from_plain
from warplint.server.documents import path_of
from warplint.server.folders import Checker, Proof
from warplint.server.requests import Worker, WorkerError

if TYPE_CHECKING:
    from warplint.server.app import WarplintServer

_STAGES = {
    "start": ("starting", 0.0),
    "scout": ("looking", 0.1),
    "measure": ("measuring", 0.3),
    "attribute": ("finding the cause", 0.7),
    "done": ("done", 0.0),  # counted as a program by then
}
"""What is told of a stage, and which part of a program's time has passed by then."""
Purpose = Literal["prove", "fix", "verify"]
_PATIENCE = 10.0
_ALLOW = "Run the programs of this folder"
_REFUSE = "Do not run them"


@dataclass
class _Run:
    checker: Checker
    files: frozenset[Path]
    task: asyncio.Task[dict[str, Any]] | None = None
    ended: str = "cancelled"
    """What is said in the end."""

    def cancel(self, why: str) -> None:
        self.ended = why
        if self.task is not None:
            self.task.cancel()


class Prover:
    """Runs programs, one request after the other; each can be cancelled."""

    def __init__(self, server: WarplintServer) -> None:
        self.server = server
        self.worker = Worker()
        self._runs: list[_Run] = []

    async def command(self, target: Any, purpose: Purpose) -> None:
        """A command of the editor: its argument is a file's URI, or a table with one."""
        uri = target.get("uri") if isinstance(target, dict) else target
        path = path_of(uri) if isinstance(uri, str) else None
        checker = self.server.opened(path) if path else None
        if path is None or checker is None:
            self.server.tell("name a file of an open folder to prove", types.MessageType.Error)
            return
        self.server.in_background(self._prove(checker, path, purpose))

    async def after_save(self, checker: Checker, path: Path) -> None:
        """What the setting ``on-save`` does: only where there is something to decide."""
        await checker.current()
        file = checker.folder.display(path)
        undecided = any(
            r.location.file == file and r.verdict is Verdict.UNVERIFIED for r in checker.folder.results()
        )
        if undecided and (checker.folder.settings.run or checker.folder.allowed):
            await self._prove(checker, path, "prove")

    def text_changed(self, path: Path) -> None:
        """What is being measured is not true of the new text."""
        for run in self._runs:
            if path in run.files:
                run.cancel("ended: the text has changed")

    def folder_closed(self, checker: Checker) -> None:
        for run in self._runs:
            if run.checker is checker:
                run.cancel("ended: the folder was closed")

    async def stop(self) -> None:
        for run in self._runs:
            run.cancel("ended")
        await self.worker.stop()

    async def _prove(self, checker: Checker, path: Path, purpose: Purpose) -> None:
        if not await self._allowed(checker):
            return
        await checker.current()
        folder = checker.folder
        file, verify = folder.display(path), purpose == "verify"
        programs = [p for p in folder.programs if p.file == file] if verify else folder.reaching(file)
        if not programs and not verify:
            self.server.tell(
                f"no program that reaches {file} was found; name one with probe.entries in the settings",
                types.MessageType.Warning,
            )
            return
        names = {name for program in programs for name in program.closure} or {file}
        request = {
            **folder.request(self.server.documents.unsaved()),
            "watch": sorted(names),
            "prove": {
                "programs": sorted({program.file for program in programs}),
                "entry": None if programs else shlex.quote(file),
                "fix": purpose == "fix",
            },
        }
        run = _Run(checker, frozenset(folder.absolute(name) for name in names))
        run.task = asyncio.ensure_future(self._ask(request, len(programs) or 1, run))
        self._runs.append(run)
        try:
            answer = await run.task
        except asyncio.CancelledError:
            return
        except WorkerError as error:
            answer = {"problem": str(error)}
        finally:
            self._runs.remove(run)
        if answer.get("problem"):
            self.server.tell(answer["problem"], types.MessageType.Error)
            return
        for line in (*answer["warnings"], *answer["errors"]):
            self.server.tell(line, types.MessageType.Warning)
        proof = Proof(
            from_plain(tuple[Result, ...], answer["results"]),
            from_plain(tuple[ProgramRow, ...], answer["rows"]),
            answer["digests"],
        )
        folder.proofs = [known for known in folder.proofs if not _replaces(proof, known)] + [proof]
        checker.touch()

    async def _ask(self, request: dict[str, Any], count: int, run: _Run) -> dict[str, Any]:
        """Ask the worker, with a progress bar that can be cancelled where the editor has one."""
        window = self.server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return await self.worker.ask(request)
        progress, token = self.server.work_done_progress, str(uuid.uuid4())
        try:
            await asyncio.wait_for(progress.create_async(token), _PATIENCE)
        except (asyncio.TimeoutError, JsonRpcException):
            return await self.worker.ask(request)  # it will not show any, then

        def button(future: Any) -> None:
            if future.cancelled():
                run.cancel("cancelled")

        progress.tokens[token].add_done_callback(button)
        doing = "looking for a fix with" if request["prove"]["fix"] else "running"
        title = f"warplint: {doing} {count} program{'' if count == 1 else 's'}"
        progress.begin(token, types.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0))
        share = 0

        def report(event: dict[str, Any]) -> None:
            words, part = _STAGES.get(event["stage"], (event["stage"], 0.0))
            nonlocal share  # the search for a fix begins anew with every attempt
            share = max(share, int(100 * min(1.0, (event["done"] + part) / max(1, event["total"]))))
            progress.report(
                token,
                types.WorkDoneProgressReport(
                    message=f"{event['program']}: {words}", percentage=share, cancellable=True
                ),
            )

        try:
            answer = await self.worker.ask(request, report)
            run.ended = _fixes(answer) if request["prove"]["fix"] else _summary(answer)
            return answer
        finally:
            with contextlib.suppress(ConnectionError):
                progress.end(token, types.WorkDoneProgressEnd(message=run.ended))
            progress.tokens.pop(token, None)

    async def _allowed(self, checker: Checker) -> bool:
        """Whether programs of the folder may be run; the user is asked once."""
        folder = checker.folder
        if folder.settings.run is not None or folder.allowed:
            if folder.settings.run is False:
                self.server.tell(
                    "running programs is turned off here (setting probe)", types.MessageType.Warning
                )
            return folder.settings.run is not False
        choices = [types.MessageActionItem(_ALLOW), types.MessageActionItem(_REFUSE)]
        answer = await self.server.window_show_message_request_async(
            types.ShowMessageRequestParams(
                types.MessageType.Warning,
                f"warplint: proving runs the programs of {folder.root} on this machine. "
                "Do not run code that you do not trust.",
                choices,
            )
        )
        folder.allowed = answer is not None and answer.title == _ALLOW
        return folder.allowed


def _replaces(new: Proof, old: Proof) -> bool:
    """Whether a run told of all the programs that an earlier one had told of."""

    def programs(proof: Proof) -> set[tuple[str, tuple[str, ...]]]:
        return {(row.program, row.arguments) for row in proof.rows}

    return programs(old) <= programs(new)


def _fixes(answer: dict[str, Any]) -> str:
    if answer.get("problem"):
        return str(answer["problem"])
    found = sum((result["fix"] or {}).get("applicability") == "verified" for result in answer["results"])
    return {0: "no fix was found", 1: "1 fix is right"}.get(
        found, f"{found} fixes are right"
    ) + " when measured"


def _summary(answer: dict[str, Any]) -> str:
    if answer.get("problem"):
        return str(answer["problem"])
    counts: dict[str, int] = {}
    for row in answer["rows"]:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "no program was run"
