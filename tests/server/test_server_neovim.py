"""A real editor: Neovim, where it is installed (Debian's package will do)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warplint.rulebook import load_rules

REPOSITORY = Path(__file__).resolve().parent.parent.parent
LINE = "    batch.assign(samples[k + 1])\n"
INDENT = '    "𝛼∂"; '
# What stands before the finding is longer in bytes than in UTF-16, and longer there than in characters.
BAD = load_rules()["WL106"].bad.replace(LINE, INDENT + LINE.strip() + "\n")

pytestmark = [
    pytest.mark.probe,
    pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed"),
]


def test_finding_action_and_verdict_in_neovim(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(BAD, encoding="utf-8")
    page = (REPOSITORY / "docs" / "editors.md").read_text(encoding="utf-8")
    snippet = re.search(r"^Older versions .*?```lua\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "snippet.lua").write_text(snippet[1])
    command = tmp_path / "bin" / "warplint"
    command.parent.mkdir()
    start = "from warplint.cli.main import run; run()"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -c "{start}" "$@"\n')
    command.chmod(0o755)
    subprocess.run(
        ["nvim", "--clean", "--headless", "-c", f"luafile {REPOSITORY / 'tests/server/neovim.lua'}"],
        env={
            **os.environ,
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
            "WARPLINT_TEST": str(tmp_path / "train.py"),
            "WARPLINT_SNIPPET": str(tmp_path / "snippet.lua"),
            "WARPLINT_SEEN": str(tmp_path / "seen"),
        },
        cwd=tmp_path,
        timeout=600,
        check=False,
    )
    steps = [json.loads(line) for line in (tmp_path / "seen").read_text(encoding="utf-8").splitlines()]
    seen = {step["step"]: step["what"] for step in steps}
    [found] = seen["finding"]["shown"]
    assert (found["code"], found["severity"], found["text"]) == ("WL106", 2, LINE.strip())
    assert seen["line"] == INDENT + LINE.strip() + "  # warplint: ignore[WL106]"
    assert seen["ignored"]["done"] and seen["undone"]["done"]
    # The line is shared with something else, so the launch is changed and not the line moved.
    assert seen["fixed"]["done"] and "inputs=[wp.clone(batch), w]" in seen["text"]
    assert str(tmp_path) in seen["question"]
    told = [step["what"] for step in steps if step["step"] == "progress"]
    assert (told[0]["kind"], told[-1]["kind"]) == ("begin", "end")
    assert "train.py: measuring" in [what.get("message") for what in told]
    [proved] = seen["proved"]["shown"]
    assert (proved["severity"], proved["text"]) == (1, LINE.strip()) and "[confirmed]" in proved["message"]
