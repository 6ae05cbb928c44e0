"""What lies outside an edit keeps its bytes: line ends, tabs, byte order marks, any language."""

from __future__ import annotations

import ast
import os
import stat
import subprocess

import pytest
from fixes_support import HEAD, all_fixed, place, result
from hypothesis import given, settings
from hypothesis import strategies as st

from warplint.fixes import candidates
from warplint.fixes.files import NotWrittenError, difference, write_over
from warplint.fixes.project import Project
from warplint.fixes.source import BOM, Source, apply_edits
from warplint.fixes.translate import translate_back
from warplint.model import Edit, Location, Related, Result, Verdict
from warplint.rulebook import load_rules

LINES = st.lists(
    st.sampled_from(
        [
            "größe = 'ä\\t'  # naïve",
            "if größe:\n\tx = (1 ,\n\t\t 2)",
            "def f( a,b ) :\n  return a;",
            '"""多行\n\ttext\n"""',
            "数 = 3 ; y=4",
            "",
            "    ",
            "\f",
        ]
    ),
    max_size=6,
)
ALLOCATION = "wp.zeros( 3 ,dtype=float)"


@settings(max_examples=60, deadline=None)
@given(LINES, LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans())
def test_nothing_but_the_edit_changes(before, after, newline, mark, last_line_ends):
    text = "\n".join(["import warp as wp", *before, f"größe = {ALLOCATION}  # ✓", *after])
    text = text.rstrip("\n \f\t") + "\n" * last_line_ends
    found = result("WL201", text, ALLOCATION)
    data = (BOM if mark else b"") + text.replace("\n", newline).encode()
    first, *_ = candidates(found, Project(["train.py"], lambda file: data))
    fixed = apply_edits(data, first.edits)
    assert fixed == data.replace(b",dtype=float)", b",dtype=float, requires_grad=True)")


@settings(max_examples=30, deadline=None)
@given(LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["    ", "\t", "  "]))
def test_new_lines_look_like_the_ones_around_them(before, newline, indent):
    loop = f"for it in range(3):\n{indent}tape.backward(loss)\n"
    text = "\n".join(["import warp as wp", *before, loop])
    found = result("WL501", text, "tape.backward(loss)")
    data = text.replace("\n", newline).encode()
    first, *_ = candidates(found, Project(["train.py"], lambda file: data))
    added = f"{indent}tape.zero(){newline}"
    assert apply_edits(data, first.edits).decode() == f"{data.decode()}{added}"


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("for i in r: tape.backward(loss)", "for i in r: tape.backward(loss); tape.zero()"),
        ("a = 1; tape.backward(loss); b = 2", "a = 1; tape.backward(loss); b = 2; tape.zero()"),
    ],
)
def test_statements_that_share_a_line_go_on_sharing_it(line, fixed):
    text = f"{HEAD}{line}\n"
    assert all_fixed("WL501", text, "tape.backward(loss)")[0] == f"{HEAD}{fixed}\n"


def test_a_string_over_several_lines_is_moved_as_it_is():
    call = 'log("""a\n  b\n""")'
    source = Source("train.py", f"if x:\n    {call}\n".encode())
    statement = source.tree.body[0].body[0]  # type: ignore[attr-defined]
    assert source.lines_of(statement, "") == ['log("""a', "  b", '""")']


def test_edits_that_overlap_are_refused():
    edits = [Edit(Location("f", 1, 1, 1, 4), "a"), Edit(Location("f", 1, 3, 1, 5), "b")]
    with pytest.raises(ValueError):
        apply_edits(b"12345\n", edits)


def test_edits_of_an_edited_file_are_translated_back():
    text = "one\ntwo\nthree\n"
    first = (Edit(place(text, "one"), "zero\none"), Edit(place(text, "two"), "2"))
    after = apply_edits(text.encode(), first).decode()
    second = Edit(place(after, "three"), "3")
    (back,) = translate_back([second], [first]) or ()
    assert back.location == place(text, "three")
    assert translate_back([Edit(place(after, "ero"), "x")], [first]) is None


# -- writing -----------------------------------------------------------------------------------


def test_mode_and_link_of_a_file_stay(tmp_path):
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_bytes(b"old")
    real.chmod(0o750)
    link.symlink_to(real.name)
    write_over({link: (b"old", b"new")})
    assert real.read_bytes() == b"new" and link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert sorted(os.listdir(tmp_path)) == ["link.py", "real.py"]


def test_a_file_that_changed_meanwhile_is_left_alone_and_so_are_the_others(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_bytes(b"one")
    two.write_bytes(b"saved by an editor")
    with pytest.raises(NotWrittenError, match=r"two\.py has changed"):
        write_over({one: (b"one", b"1"), two: (b"two", b"2")})
    assert (one.read_bytes(), two.read_bytes()) == (b"one", b"saved by an editor")
    assert sorted(os.listdir(tmp_path)) == ["one.py", "two.py"]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_file_whole(broken, tmp_path, monkeypatch):
    file = tmp_path / "train.py"
    file.write_bytes(b"old")

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, broken, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_over({file: (b"old", b"new and longer")})
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["train.py"]


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    file = tmp_path / "train.py"
    file.write_bytes(b"old")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotWrittenError, match="no space left on device"):
        write_over({file: (b"old", b"new")})
    assert file.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        (b"a\nb", b"a\nB"),
        ("ä\fb\n".encode(), "ä\fB\n".encode()),
    ],
    ids=["lf", "crlf", "no-last-line-end", "form-feed"],
)
def test_patch_takes_the_difference(was, now, tmp_path):
    (tmp_path / "f.py").write_bytes(was)
    text = difference({"f.py": was}, {"f.py": now})
    (tmp_path / "p.diff").write_bytes(text.encode())
    subprocess.run(["git", "apply", "p.diff"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "f.py").read_bytes() == now


PROGRAMS = [rule.bad for rule in load_rules().values() if rule.bad]
WORDS = ("read here", "overwritten here", "backward pass runs here", "tape.zero() here", "reported here")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whatever_a_result_points_at_what_comes_out_is_python(data):
    """A finding may stand anywhere, and speak of anything; nothing is printed that does not parse."""
    text = data.draw(st.sampled_from(PROGRAMS))
    source = Source("train.py", text.encode())
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, (ast.stmt, ast.expr))]
    names = sorted({node.id for node in nodes if isinstance(node, ast.Name)})

    def anywhere() -> Location:
        node = data.draw(st.sampled_from(nodes))
        return source.place(source.replace(node, ""))

    buffers = [data.draw(st.sampled_from(names)) for _ in range(2)]
    found = Result(
        rule=data.draw(st.sampled_from(sorted(load_rules()))),
        name="",
        verdict=Verdict.CONFIRMED,
        message="`{}` and `{}`".format(*buffers),
        location=anywhere(),
        related=tuple(Related(anywhere(), words) for words in WORDS),
    )
    for candidate in candidates(found, Project(["train.py"], lambda file: text.encode())):
        ast.parse(apply_edits(text.encode(), candidate.edits))
