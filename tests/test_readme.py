"""The README is true: its rule list, its commands, its sample of output."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warplint.cli.rules import listing
from warplint.model import Verdict
from warplint.rulebook import load_rules

README = Path(__file__).resolve().parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")


def between(start: str, end: str) -> str:
    return TEXT.partition(start)[2].partition(end)[0].strip()


def test_rule_list(request):
    expected = listing(load_rules(), "markdown").strip()
    start, end = "<!-- rules: begin -->", "<!-- rules: end -->"
    if request.config.getoption("--update-golden"):
        before, after = TEXT.partition(start)[0], TEXT.partition(end)[2]
        README.write_text(f"{before}{start}\n{expected}\n{end}{after}", encoding="utf-8")
        return
    assert between(start, end) == expected


def test_all_verdicts_are_explained():
    for verdict in Verdict:
        assert f"| `{verdict}` |" in TEXT


def test_ci_finds_the_readme_command(repository):
    script = (repository / ".ci" / "run").read_text(encoding="utf-8")
    (line,) = re.findall(r"^command=(\$\(.*\))$", script, re.MULTILINE)
    done = subprocess.run(["bash", "-c", f"echo {line}"], cwd=repository, capture_output=True, text=True)
    assert done.stdout.strip() == "pip install '.[test]' && pytest"


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", TEXT))
def test_links_lead_somewhere(target, repository):
    assert (repository / target).exists()


def shape(text: str) -> list[str]:
    """The report without what differs between machines: digits, and how many rows a table has."""
    lines = []
    for line in text.splitlines():
        if re.search(r"(differs|agrees|inconclusive.*)$", line):
            continue
        masked = re.sub(r"\d[\d.e-]*", "#", line)
        masked = re.sub(r"[0-9a-f]{6,}|#[0-9a-f#]*\.py", "#", masked)
        lines.append(" ".join(masked.split()))
    return lines


@pytest.mark.probe
def test_sample_of_output(request, repository, tmp_path):
    (command,) = re.findall(r"<!-- sample: (.*) -->", TEXT)
    name, *arguments = command.split()
    assert name == "warplint"
    shutil.copytree(repository / "fixtures", tmp_path / "fixtures")
    done = subprocess.run(
        [sys.executable, "-c", "from warplint.cli.main import run; run()", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    start, end = f"<!-- sample: {command} -->\n```text\n", "```\n"
    if request.config.getoption("--update-golden"):
        text = README.read_text(encoding="utf-8")
        before, _, rest = text.partition(start)
        README.write_text(f"{before}{start}{done.stdout}{end}{rest.partition(end)[2]}", encoding="utf-8")
        return
    assert shape(done.stdout) == shape(TEXT.partition(start)[2].partition(end)[0])
