"""warplint in an environment of its own, Warp only in the project's."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from warplint.rulebook import load_rules

pytestmark = pytest.mark.probe

PROJECT_ONLY = ("warp", "numpy")
ROOT = Path(__file__).resolve().parents[3]


def environment(directory: Path, packages: Path, *paths: Path) -> Path:
    """A virtual environment that sees ``packages`` and nothing else; its interpreter."""
    venv.create(directory, with_pip=False, symlinks=True)
    (site,) = directory.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text("\n".join(map(str, (packages, *paths))) + "\n", encoding="utf-8")
    return directory / "bin" / "python"


@pytest.fixture
def split(tmp_path: Path) -> tuple[Path, Path]:
    """The installed packages, dealt out: what warplint needs, and Warp with numpy."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    for package in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if package.name.startswith(("__editable__", "_virtualenv")) or package.suffix == ".pth":
            continue
        target = theirs if package.name.lower().startswith(PROJECT_ONLY) else ours
        if package.name.lower().startswith("warplint"):
            target = ours
        (target / package.name).symlink_to(package)
    return ours, theirs


def imports(python: Path, module: str) -> bool:
    done = subprocess.run([python, "-c", f"import {module}"], cwd="/", capture_output=True, timeout=120)
    return done.returncode == 0


def test_the_project_is_probed_with_its_own_interpreter(split: tuple[Path, Path], tmp_path: Path) -> None:
    ours, theirs = split
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[project]\nname = "swimmer"\nversion = "1"\n', encoding="utf-8")
    (project / "program.py").write_text(load_rules()["WL201"].bad, encoding="utf-8")
    linter = environment(tmp_path / "linter", ours, ROOT)
    python = environment(project / ".venv", theirs)
    assert not imports(linter, "warp")
    assert imports(linter, "warplint.cli.main")
    assert imports(python, "warp")
    assert not imports(python, "libcst")
    done = subprocess.run(
        [linter, "-c", "from warplint.cli.main import run; run()", "check", ".", "--format", "json"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
    )
    report = json.loads(done.stdout)
    (row,) = report["programs"]
    assert Path(row["interpreter"]).resolve() == python.resolve()
    assert ".venv" in row["interpreter"]
    assert (row["status"], done.returncode) == ("wrong", 1)
    assert [r["rule"] for r in report["results"] if r["verdict"] == "confirmed"] == ["WL201"]


def test_this_test_runs_where_both_are_installed() -> None:
    assert imports(Path(sys.executable), "warp")
