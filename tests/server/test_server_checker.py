"""How checks follow the typing: never two at a time, never an old answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warplint.model import Location, Result, Verdict
from warplint.server import folders
from warplint.server.folders import Checker, Folder, Proof, decided

ANSWER = {"results": [], "programs": [], "show_dismissed": False, "digests": {}}


class Slow:
    """A worker that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ended = 0
        self.gate = asyncio.Event()

    async def ask(self, request, on_progress=None):
        self.asked.append(request["buffers"]["/p/a.py"])
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return {**ANSWER, "problem": request["buffers"]["/p/a.py"]}


def make():
    worker, text, published = Slow(), {Path("/p/a.py"): "1"}, []

    async def after(folder):
        published.append(folder.problem)

    return Checker(Folder(Path("/p")), worker, lambda: text, after), worker, text, published


@pytest.mark.asyncio
async def test_a_check_of_an_old_text_is_ended():
    checker, worker, text, published = make()
    for version in ("1", "2", "3"):
        text[Path("/p/a.py")] = version
        checker.touch()
        await asyncio.sleep(0.01)
    worker.gate.set()
    await checker.current()
    assert (worker.asked, worker.ended, published) == (["1", "2", "3"], 2, ["3"])


@pytest.mark.asyncio
async def test_a_pause_in_typing_is_waited_for():
    checker, worker, text, published = make()
    worker.gate.set()
    for version in ("1", "2", "3"):
        text[Path("/p/a.py")] = version
        checker.touch(0.05)
    await checker.current()
    assert (worker.asked, published) == (["3"], ["3"])


@pytest.mark.asyncio
async def test_the_first_look_at_a_large_tree_comes_to_its_end(monkeypatch):
    """Else somebody who types all the time would never see anything: what is read once is remembered."""
    monkeypatch.setattr(folders, "_FINISHES", 0.0)
    checker, worker, text, published = make()
    checker.touch()
    await asyncio.sleep(0.01)
    text[Path("/p/a.py")] = "2"
    checker.touch()
    worker.gate.set()
    await checker.current()
    assert (worker.asked, worker.ended, published) == (["1", "2"], 0, ["2"])


@pytest.mark.asyncio
async def test_a_stopped_checker_keeps_nobody_waiting():
    checker, _, _, _ = make()
    checker.touch()
    await asyncio.sleep(0.01)
    checker.stop()
    await asyncio.wait_for(checker.current(), 5)


def result(verdict: Verdict, program: str | None = None, line: int = 3, rule: str = "WL106") -> Result:
    return Result(rule, "x", verdict, "m", Location("a.py", line), program=program)


def test_the_heaviest_verdict_stands_and_only_measured_ones_count():
    finding = result(Verdict.UNVERIFIED)
    latent, confirmed = result(Verdict.LATENT, "a.py"), result(Verdict.CONFIRMED, "b.py")
    not_asked = result(Verdict.UNVERIFIED, line=9)
    proofs = [Proof((latent, not_asked), (), {}), Proof((confirmed,), (), {})]
    assert decided([finding], proofs) == (confirmed,)
    dismissed = result(Verdict.DISMISSED, "a.py")
    assert decided([finding], [Proof((dismissed,), (), {})]) == ()
    assert decided([finding], [Proof((dismissed,), (), {})], dismissed=True) == (dismissed,)


def test_a_verdict_holds_for_the_texts_that_it_was_measured_on():
    proof = Proof((), (), {"a.py": "1", "b.py": "2"})
    assert proof.holds({"a.py": "1", "b.py": "2", "c.py": "3"})
    assert not proof.holds({"a.py": "1", "b.py": "changed"})
    assert not proof.holds({"a.py": "1"})


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_editor_that_dies_leaves_nothing_running(tmp_path):
    repository = Path(__file__).resolve().parent.parent.parent
    mark = f"WARPLINT_TEST_MARK={tmp_path.name}"
    name, _, value = mark.partition("=")
    path = os.pathsep.join([str(repository), *filter(None, [os.environ.get("PYTHONPATH")])])
    start = "from warplint.cli.main import run; run(['server'])"
    server = subprocess.Popen(
        [sys.executable, "-c", start],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, name: value},
    )
    (tmp_path / "a.py").write_text("import warp as wp\n\nwp.Tape(\n")
    start = {"rootUri": tmp_path.as_uri(), "capabilities": {}}
    for message in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "initialized", "params": {}},
    ):
        body = json.dumps(message).encode()
        server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    server.stdin.flush()
    seen = b""
    while b"WL002" not in seen:
        seen += os.read(server.stdout.fileno(), 1 << 16)
    assert len(marked(mark)) >= 2  # the server and its reader
    server.stdin.close()
    server.stdout.close()
    server.wait(30)
    deadline = time.monotonic() + 30
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = marked(mark)
    for number in left:
        os.kill(number, signal.SIGKILL)
    assert not left


def marked(mark: str) -> list[int]:
    """The processes that carry a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
