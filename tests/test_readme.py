"""The README is true: its rule list, its verdicts, its links; its commands are run in `tests/docs`."""

from __future__ import annotations

import re
import subprocess
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
