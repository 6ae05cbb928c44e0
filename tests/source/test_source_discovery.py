"""Which files are taken, and what a bad one becomes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warplint.source import SourceError, discover
from warplint.source.discovery import MAX_BYTES


def shown(found) -> list[str]:
    return [f.display for f in found.files]


def put(root, *names: str, text: str = "import warp\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def test_walks_directories_in_order_and_skips_environments(tmp_path):
    put(tmp_path, "b.py", "a/x.py", ".venv/lib/y.py", "build/z.py", "a/__pycache__/c.py", "notes.txt")
    assert shown(discover(["."], root=tmp_path)) == ["a/x.py", "b.py"]


def test_respects_gitignore_the_way_git_does(tmp_path):
    put(tmp_path, "keep.py", "gen/a.py", "sub/local.py", "sub/kept.py", "sub/deep/local.py")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("gen/\nlocal.py\n", encoding="utf-8")
    (tmp_path / "sub" / "deep" / ".gitignore").write_text("!local.py\n", encoding="utf-8")
    assert shown(discover(["."], root=tmp_path)) == ["keep.py", "sub/deep/local.py", "sub/kept.py"]
    assert shown(discover(["sub"], root=tmp_path)) == ["sub/deep/local.py", "sub/kept.py"]


def test_a_named_file_is_taken_even_if_ignored(tmp_path):
    put(tmp_path, "gen.py")
    (tmp_path / ".gitignore").write_text("gen.py\n", encoding="utf-8")
    assert shown(discover(["gen.py"], root=tmp_path)) == ["gen.py"]


def test_exclude_globs(tmp_path):
    put(tmp_path, "a.py", "old/b.py", "c_gen.py")
    assert shown(discover(["."], root=tmp_path, exclude=["old/", "*_gen.py"])) == ["a.py"]


def test_a_missing_path_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"no such file or directory: nowhere\.py"):
        discover(["nowhere.py"], root=tmp_path)


def test_paths_outside_the_root_are_absolute(tmp_path):
    put(tmp_path, "here/a.py", "there/b.py")
    (file,) = discover([tmp_path / "there" / "b.py"], root=tmp_path / "here").files
    assert file.display == (tmp_path / "there" / "b.py").as_posix()


@pytest.mark.parametrize(
    ("data", "problem", "place"),
    [
        (b"import warp\nx = (\n", "syntax error (line 2)", (2, 5)),
        (b"import warp\n# caf\xe9\n", "not UTF-8 (line 2)", (2, 6)),
        (b"\xef\xbb\xbfwarp = '\xc3\xa9\xff'", "not UTF-8 (line 1)", (1, 10)),
        (b"#" * (MAX_BYTES + 1), "larger than 2 MB", (1, 1)),
    ],
)
def test_a_bad_file_is_a_record(tmp_path, data, problem, place):
    (tmp_path / "bad.py").write_bytes(data)
    (file,) = discover(["."], root=tmp_path).files
    assert file.problem is not None
    assert problem in file.problem
    assert file.problem_place == place


@pytest.mark.parametrize("data", [b"x = {{ name }\n", b"# -*- coding: latin-1 -*-\nx = 'caf\xe9'\n"])
def test_what_files_without_warp_say_is_nobodys_business(tmp_path, data):
    (tmp_path / "other.py").write_bytes(data)
    (file,) = discover(["."], root=tmp_path).files
    assert file.problem is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import warp as wp\nwp.Tape()\n", True),
        ("import warp as wp\nwp.launch(k, 1, adjoint=True)\n", True),
        ("import torch\nloss.backward()\n", False),
        ("import warp as wp\n", False),
    ],
)
def test_byte_screen(tmp_path, text, expected):
    put(tmp_path, "a.py", text=text)
    (file,) = discover(["."], root=tmp_path).files
    assert file.screened is expected


def test_links_to_nowhere_are_passed_over(tmp_path: Path) -> None:
    """Editors keep lock files like this beside an unsaved buffer."""
    (tmp_path / "train.py").write_text("import warp\n")
    (tmp_path / ".#train.py").symlink_to("user@host.1234")
    (tmp_path / "loop.py").symlink_to("loop.py")
    assert [f.display for f in discover([tmp_path], root=tmp_path).files] == ["train.py"]


def test_a_directory_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    put(tmp_path, "a.py", "dark/b.py")
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "dark":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = discover(["."], root=tmp_path)
    assert shown(found) == ["a.py"]
    assert found.passed_over == ("dark: cannot be read: Permission denied; nothing in it was checked",)


def test_only_python_is_taken_where_a_file_is_named(tmp_path):
    put(tmp_path, "a.py", "b.pyw", "notes.txt", "n.ipynb")
    put(tmp_path, "tool", text="#!/usr/bin/env python3\nimport warp\n")
    names = ["a.py", "b.pyw", "notes.txt", "n.ipynb", "tool"]
    found = discover(names, root=tmp_path)
    assert shown(found) == ["a.py", "b.pyw", "n.ipynb", "tool"]
    assert [line.partition(":")[0] for line in found.passed_over] == ["notes.txt"]


def test_a_named_file_that_cannot_be_read_is_a_record(tmp_path, monkeypatch):
    put(tmp_path, "secret.py")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    (file,) = discover(["secret.py"], root=tmp_path).files
    assert file.problem == "cannot be read: Permission denied"


def test_what_is_no_regular_file_is_never_opened(tmp_path):
    put(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    assert shown(discover(["."], root=tmp_path)) == ["a.py"]
    found = discover(["pipe.py", "zero.py"], root=tmp_path)
    assert found.files == ()
    assert found.passed_over[0] == "pipe.py: not checked: not a regular file"
