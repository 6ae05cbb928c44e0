"""What is kept of earlier runs, and how many processes work, never changes a result."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from static_prelude import PRELUDE

from warplint.cli.main import main
from warplint.source.cache import Cache
from warplint.source.facts import FileFacts

LIBRARY = PRELUDE + "STEPS = 6\n"
PROGRAM = """\
import warp as wp
import pkg
from library import STEPS, grad, step, total

k, loss = grad(1), grad(1)
a, b = grad(), grad()
with wp.Tape() as tape:
    for _ in range(STEPS):
        pkg.stepping.advance(step, a, k, b)
        a, b = b, a
    wp.launch(total, 3, [a], [loss])
tape.backward(loss)
"""
ADVANCE = "import warp as wp\n\n\ndef advance(kernel, a, k, b):\n    wp.launch(kernel, 3, [a, k], [b])\n"
UNUSED = """\
import warp as wp
from library import grad, square


def taped(x):
    y = grad()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(square, 3, [y], [x])
    tape.backward(grads={x: grad()})
"""


@pytest.fixture
def tree(write, monkeypatch, tmp_path_factory):
    """A project, with a cache that only it uses."""
    kept = tmp_path_factory.mktemp("kept")
    monkeypatch.setenv("WARPLINT_CACHE_DIR", str(kept))
    root = write(
        {
            "library.py": LIBRARY,
            "train.py": PROGRAM,
            "pkg/__init__.py": "",
            "pkg/stepping.py": ADVANCE,
            "unused.py": UNUSED,
            "broken.py": "import warp as wp\ntape = wp.Tape(\n",
        }
    )
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def report(tree, capsys):
    def report(*options: str) -> str:
        capsys.readouterr()
        assert main(["check", "--no-probe", "--exit-zero", "--format", "json", *options, "."]) == 0
        return capsys.readouterr().out

    return report


def kept() -> list[Path]:
    return sorted(Path(os.environ["WARPLINT_CACHE_DIR"]).rglob("*.json"))


def rules(text: str) -> list[str]:
    return [r["rule"] for r in json.loads(text)["results"]]


def test_the_same_bytes_with_and_without(report):
    plain = report("--no-cache", "--jobs", "1")
    assert rules(plain) == ["WL002", "WL103", "WL103"]
    assert report("--no-cache", "--jobs", "3") == plain
    assert kept() == []
    assert report("--jobs", "2") == plain, "nothing known"
    assert len(kept()) == 1
    assert report("--jobs", "1") == plain, "all known"
    assert report() == plain


def test_nothing_is_worked_out_twice(report, monkeypatch):
    first = report()

    def never(*_: object) -> None:
        raise AssertionError("worked out again")

    assert any(result["fix"] for result in json.loads(first)["results"])
    monkeypatch.setattr(FileFacts, "of", never)
    monkeypatch.setattr("warplint.fixes.candidates", never)
    monkeypatch.setattr("libcst.parse_module", never)
    assert report() == first


def test_one_changed_file_leaves_the_rest_known(report, tree, monkeypatch):
    before = report()
    (tree / "unused.py").write_text(UNUSED.replace("[y], [x]", "[y], [grad()]"))
    looked_at = []
    original = FileFacts.of
    monkeypatch.setattr(FileFacts, "of", lambda text: looked_at.append(text) or original(text))
    after = report("--jobs", "1")
    assert len(looked_at) == 1
    assert (rules(before), rules(after)) == (["WL002", "WL103", "WL103"], ["WL002", "WL103"])
    assert after == report("--no-cache")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("library.py", LIBRARY.replace("k[0] * x[i] * x[i]", "k[0]")),
        ("library.py", LIBRARY.replace("STEPS = 6", "STEPS = 1")),
        ("pkg/stepping.py", ADVANCE.replace("wp.launch", "print")),  # reached without an import of it
        ("pkg/library.py", ""),  # not the one that is imported
        ("pkg/__init__.py", "class stepping:\n    def advance(*arguments):\n        pass\n"),
        ("src/library.py", LIBRARY),
        ("broken.py", "import warp as wp\n"),
    ],
)
def test_a_change_anywhere_counts(name, text, report, tree):
    report()
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text(text)
    assert report() == report("--no-cache")
    assert report("train.py") == report("--no-cache", "train.py")


COPIED_AGAIN = """\
import warp as wp
from library import grad, square, total

x, y, loss = grad(), grad(), grad(1)
with wp.Tape() as tape:
    wp.launch(square, 3, [x], [y])
    z = wp.clone(y)
    wp.launch(total, 3, [y], [loss])
    wp.launch(total, 3, [z], [loss])
tape.backward(loss)
"""


def test_what_is_known_of_one_version_of_warp_is_not_said_of_another(report, tree, monkeypatch):
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tree / "again.py").write_text(COPIED_AGAIN)
    told = {}
    for version in ("1.19.0", "1.16.0", "1.17.0", "1.13.0"):
        (tree / "requirements.txt").write_text(f"warp-lang=={version}\n")
        told[version] = "WL109" in rules(report())
    assert told == {"1.19.0": False, "1.16.0": True, "1.17.0": False, "1.13.0": True}


def test_each_program_has_the_warp_of_its_own_environment(report, tree, monkeypatch):
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tree / "old" / ".venv" / "lib" / "python3.11" / "site-packages" / "warp_lang-1.16.0.dist-info").mkdir(
        parents=True
    )
    (tree / "old" / ".venv" / "pyvenv.cfg").write_text("")
    for folder in ("old", "new"):
        (tree / folder).mkdir(exist_ok=True)
        (tree / folder / "library.py").write_text(LIBRARY)
        (tree / folder / "again.py").write_text(COPIED_AGAIN)
    found = [r["location"]["file"] for r in json.loads(report())["results"] if r["rule"] == "WL109"]
    assert found == ["old/again.py"]


def test_a_file_that_comes_to_stand_before_another(report, tree):
    (tree / "jobs").mkdir()
    (tree / "jobs" / "train.py").write_text((tree / "train.py").read_text())
    before = report("jobs")
    (tree / "jobs" / "library.py").write_text(LIBRARY.replace("STEPS = 6", "STEPS = 1"))
    after = report("jobs/train.py")
    assert after == report("--no-cache", "jobs/train.py")
    assert after != before


@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("damage", [b"", b"\0", b"[]", b"9"])
def test_a_damaged_file_is_as_good_as_none(place, damage, report):
    first = report()
    (file,) = kept()
    data = file.read_bytes()
    at = int(place * len(data))
    file.write_bytes(data[:at] + damage + data[at + max(1, len(damage)) :])
    assert report() == first


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{}", b"null", b"x\n[1]"])
def test_a_foreign_file_is_as_good_as_none(data, report):
    first = report()
    kept()[0].write_bytes(data)
    assert report() == first
    assert report() == first


def test_a_directory_that_cannot_be_written_is_no_reason_to_complain(report, monkeypatch, tmp_path_factory):
    first = report()
    place = tmp_path_factory.mktemp("file") / "file"
    place.write_text("")
    monkeypatch.setenv("WARPLINT_CACHE_DIR", str(place / "below"))
    assert report() == first


def test_nothing_is_written_into_the_tree(report, tree):
    before = sorted(p.relative_to(tree) for p in tree.rglob("*"))
    report()
    assert sorted(p.relative_to(tree) for p in tree.rglob("*")) == before


def test_what_is_not_used_for_long_is_dropped(tmp_path):
    file = tmp_path / "kept.json"
    cache = Cache(file)
    cache.put("facts", "old", 1)
    cache.save()
    for run in range(40):
        cache = Cache(file)
        assert run > 20 or cache.get("facts", "used") == (run or None)
        cache.put("facts", "used", run + 1)
        cache.save()
    cache = Cache(file)
    assert cache.get("facts", "old") is None
    assert cache.get("facts", "used") == 40


def test_facts_come_back_as_they_were():
    facts = FileFacts.of(PROGRAM + UNUSED + "import os.path as p, sys\nfrom .. import a as b\nb.x = 1\n")
    assert facts.taped == ("taped",)
    assert facts.effects
    assert FileFacts.from_plain(json.loads(json.dumps(facts.to_plain()))) == facts
