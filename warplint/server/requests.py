"""The server's end of a worker: requests that can be awaited and cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

_LONGEST = 256 << 20
# `-m` would put the working directory, which is somebody's workspace, on the path of the worker.
_START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; from warplint.server.worker import main; main()"
)


class WorkerError(Exception):
    """The worker did not answer."""


class Worker:
    """One worker process, started when it is first needed; it answers one request after the other."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._last = 0

    async def ask(
        self, request: Mapping[str, Any], on_progress: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """The answer to a request. Cancelling this ends the work."""
        async with self._lock:
            # Not to be cancelled half way: nobody would know of the process.
            process = await asyncio.shield(self._started())
            assert process.stdin is not None and process.stdout is not None
            self._last += 1
            number = self._last
            try:
                self._send({**request, "id": number})
                await process.stdin.drain()
                while line := await process.stdout.readline():
                    message = json.loads(line)
                    if message["id"] != number:
                        continue  # the rest of something that was cancelled
                    if "answer" in message:
                        answer: dict[str, Any] = message["answer"]
                        return answer
                    if on_progress is not None:
                        on_progress(message["progress"])
            except asyncio.CancelledError:
                self._cancel(number)
                raise
            except (ConnectionError, ValueError) as error:
                await self.stop()
                raise WorkerError(str(error)) from error
            await self.stop()
            raise WorkerError("the process that reads the code has ended")

    async def stop(self) -> None:
        """End the process; whatever it is doing ends with it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 30)
        except asyncio.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _START,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST,
            )
        return self._process

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def _cancel(self, number: int) -> None:
        if not hasattr(os, "fork"):  # pragma: no cover - depends on the system
            if self._process is not None:
                self._process.kill()
            return
        with contextlib.suppress(OSError, AssertionError):
            self._send({"cancel": number})
