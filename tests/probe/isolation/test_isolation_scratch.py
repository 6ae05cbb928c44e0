"""The copy of the project: complete enough to run in, bounded, and cut off from the original."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from isolation_support import Project

from warplint.probe import scratch as module
from warplint.probe.scratch import Scratch, is_broad, project_root, remove_tree


def test_copies_files_with_mode_and_time(project: Project) -> None:
    script = project.root / "tool.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    os.utime(script, (1000, 1000))
    with Scratch(project.root, project.root / "data") as scratch:
        copy = scratch.tree / "tool.sh"
        assert copy.stat().st_mode & 0o777 == 0o755
        assert copy.stat().st_mtime == 1000
        assert scratch.tree.name == "project"
        assert scratch.working_directory == scratch.tree / "data"
    assert not scratch.base.exists()


def test_skips_what_is_no_part_of_the_program(project: Project) -> None:
    for name in (".git", "node_modules", "__pycache__", ".warplint", "data/__pycache__", "env", ".venv"):
        (project.root / name).mkdir()
        (project.root / name / "file").write_text("x")
    (project.root / "env" / "pyvenv.cfg").write_text("")
    os.mkfifo(project.root / "fifo")
    with socket.socket(socket.AF_UNIX) as local, Scratch(project.root, project.root) as scratch:
        local.bind(str(project.root / "s"))
        names = {str(path.relative_to(scratch.tree)) for path in scratch.tree.rglob("*")}
    assert names == {"data", "data/input.txt", "helper.py", "pyproject.toml"}


def test_links(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "far.txt").write_text("far")
    root = project.root
    (root / "relative").symlink_to("data/input.txt")
    (root / "absolute").symlink_to(root / "data")
    (root / "far").symlink_to(outside / "far.txt")
    (root / "fardir").symlink_to(outside)
    (root / "broken").symlink_to("/no/such/file")
    (root / "loop").symlink_to(root.parent)
    (root / "everything").symlink_to("/")
    with Scratch(root, root) as scratch:
        tree = scratch.tree
        assert os.readlink(tree / "relative") == "data/input.txt"
        assert os.readlink(tree / "absolute") == "data"
        assert not (tree / "far").is_symlink()
        assert (tree / "far").read_text() == "far"
        assert not (tree / "fardir").is_symlink()
        assert (tree / "fardir" / "far.txt").read_text() == "far"
        assert not (tree / "broken").exists()
        assert (tree / "loop").is_symlink()
        assert os.readlink(tree / "everything") == "/"
    assert (outside / "far.txt").exists()


def test_big_files_are_linked(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES_A_FILE", 1000)
    monkeypatch.setattr(module.confine, "landlock_abi", lambda: 7)
    (project.root / "big").write_bytes(bytes(1001))
    with Scratch(project.root, project.root) as scratch:
        assert os.readlink(scratch.tree / "big") == str(project.root / "big")


def test_big_files_are_copied_where_writes_cannot_be_confined(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES_A_FILE", 1000)
    monkeypatch.setattr(module.confine, "landlock_abi", lambda: 0)
    (project.root / "big").write_bytes(bytes(1001))
    with Scratch(project.root, project.root) as scratch:
        assert not (scratch.tree / "big").is_symlink()


def test_bounded_number_of_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 20)
    for folder in ("many", "many2"):
        (project.root / folder).mkdir()
        for i in range(50):
            (project.root / folder / f"{i}.txt").write_text("x")
    with Scratch(project.root, project.root) as scratch:
        assert (scratch.tree / "helper.py").is_file()
        assert (scratch.tree / "many").is_symlink()
        assert (scratch.tree / "many" / "3.txt").read_text() == "x"
        assert len(list(scratch.base.rglob("*"))) < 40


def test_code_is_copied_before_data(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    (project.root / "a.bin").write_bytes(bytes(90))
    (project.root / "b.bin").write_bytes(bytes(90))
    (project.root / "deep").mkdir()
    (project.root / "deep" / "code.py").write_text("x = 1\n" * 100)
    with Scratch(project.root, project.root) as scratch:
        assert not (scratch.tree / "a.bin").is_symlink()
        assert (scratch.tree / "b.bin").is_symlink()
        assert not (scratch.tree / "deep" / "code.py").is_symlink()


def test_home_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "pictures").mkdir(parents=True)
    (home / "pictures" / "p.jpg").write_text("p")
    (home / "fit.py").write_text("")
    (home / ".netrc").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    assert is_broad(home)
    assert project_root(home / "fit.py", home) == home
    with Scratch(home, home) as scratch:
        assert not (scratch.tree / "fit.py").is_symlink()
        assert (scratch.tree / "pictures").is_symlink()
        assert not (scratch.tree / ".netrc").exists()
    assert (home / "pictures" / "p.jpg").exists()


def test_paths_there_and_back(project: Project) -> None:
    with Scratch(project.root, project.root) as scratch:
        copy = scratch.to_scratch(project.root / "data" / "new.txt")
        assert copy == scratch.tree / "data" / "new.txt"
        assert scratch.to_original(str(copy)) == str(project.root / "data" / "new.txt")
        assert scratch.to_scratch(Path("/usr/lib")) == Path("/usr/lib")
        assert scratch.to_original("/usr/lib") == "/usr/lib"
        assert scratch.to_original(str(scratch.tree) + "-other") == str(scratch.tree) + "-other"
        assert (
            scratch.original_text(f'File "{copy}", line 1') == f'File "{project.root}/data/new.txt", line 1'
        )


def test_project_root(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    package = repository / "examples" / "cloth"
    package.mkdir(parents=True)
    program = package / "fit.py"
    assert project_root(program, repository) == repository
    assert project_root(program, package) == package
    (repository / ".git").mkdir()
    assert project_root(program, tmp_path) == repository
    assert project_root(program, package) == package
    (repository / "examples" / "pyproject.toml").write_text("")
    assert project_root(program, repository) == repository / "examples"
    assert project_root(program, tmp_path / "elsewhere") == repository / "examples"
    stray = tmp_path / "stray" / "x.py"
    assert project_root(stray, tmp_path / "elsewhere") == stray.parent


@pytest.mark.parametrize("broad", ["/", "/home", "/tmp", "/usr"])
def test_broad_directories(broad: str) -> None:
    assert is_broad(Path(broad))
    assert not is_broad(Path("/app"))


def test_unreadable_entries_are_skipped(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        if source.endswith("helper.py"):
            raise PermissionError(source)
        original(source, target)

    original = module._copy_file
    monkeypatch.setattr(module, "_copy_file", refuse)
    with Scratch(project.root, project.root) as scratch:
        assert not (scratch.tree / "helper.py").exists()
        assert (scratch.tree / "data" / "input.txt").exists()


def test_remove_tree_follows_no_link(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "link").symlink_to(kept)
    (top / "link").symlink_to(kept)
    remove_tree(top)
    assert not top.exists()
    assert (kept / "file").read_text() == "x"
