"""What each command imports: starting up must not wait for what is not needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("libcst", "networkx", "rich", "warp", "numpy", "sarif_om", "pathspec")


def modules_after(arguments: list[str], directory) -> set[str]:
    code = (
        "import json, sys\n"
        "from warplint.cli.main import main\n"
        f"status = main({arguments!r})\n"
        "print()\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=directory, capture_output=True, text=True, timeout=120, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["rules"], ["rule", "WL101"], ["--nope"]])
def test_nothing_heavy(arguments, tmp_path):
    assert modules_after(arguments, tmp_path).isdisjoint(HEAVY)


def test_version_does_not_even_need_click(tmp_path):
    assert "click" not in modules_after(["--version"], tmp_path)


@pytest.mark.parametrize("format", ["text", "json", "sarif", "github"])
def test_without_a_probe_neither_warp_nor_numpy(format, tmp_path, repository):
    fixture = repository / "fixtures" / "cloth_ping_pong"
    loaded = modules_after(["--no-probe", "--format", format, str(fixture)], tmp_path)
    assert loaded.isdisjoint(("warp", "numpy"))


def test_version(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from warplint.cli.main import run; run()", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    name, _, number = done.stdout.partition(" ")
    assert name == "warplint"
    assert number.strip().count(".") == 2
