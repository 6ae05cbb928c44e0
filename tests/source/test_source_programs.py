"""Programs, their closures and whether they reach a tape."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplint.source import SourceError, discover, find_programs, program_for_entry

TAPED = "import warp as wp\n\n\ndef train():\n    tape = wp.Tape()\n"


@pytest.fixture
def programs(tmp_path):
    def programs(files: dict[str, str]):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return find_programs(discover(["."], root=tmp_path).files, tmp_path)

    return programs


def test_a_main_block_makes_a_program(programs):
    (found,) = programs({"train.py": TAPED + "\n\nif __name__ == '__main__':\n    train()\n"})
    assert found.file == "train.py"
    assert found.working_directory == "."
    assert found.closure == ("train.py",)
    assert found.reaches_tape


def test_top_level_work_makes_a_program(programs):
    files = {"direct.py": "import warp as wp\nwp.launch(k, 1)\n", "called.py": TAPED + "train()\n"}
    files["library.py"] = TAPED + "STEPS = max(1, 2)\n"
    assert [p.file for p in programs(files)] == ["called.py", "direct.py"]


def test_tests_are_not_programs(programs):
    main = "\n\nif __name__ == '__main__':\n    train()\n"
    assert programs({"test_train.py": TAPED + main, "conftest.py": TAPED + main}) == ()


def test_the_closure_follows_all_import_forms(programs):
    found = programs(
        {
            "app/run.py": "import pkg.sim\nfrom helpers import *\nimport numpy\n\n"
            "if __name__ == '__main__':\n    pkg.sim.go()\n",
            "app/helpers.py": "x = 1\n",
            "app/pkg/__init__.py": "",
            "app/pkg/sim.py": "from . import kernels\nfrom .deep.more import y\n",
            "app/pkg/kernels.py": TAPED,
            "app/pkg/deep/__init__.py": "from ..other import z\n",
            "app/pkg/deep/more.py": "y = 1\n",
            "app/pkg/other.py": "z = 1\n",
            "app/unrelated.py": "",
        }
    )
    (program,) = found
    assert program.working_directory == "app"
    assert program.reaches_tape
    assert program.closure == (
        "app/helpers.py",
        "app/pkg/__init__.py",
        "app/pkg/deep/__init__.py",
        "app/pkg/deep/more.py",
        "app/pkg/kernels.py",
        "app/pkg/other.py",
        "app/pkg/sim.py",
        "app/run.py",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# wp.Tape()\nx = 'Tape'\n", False),
        ("with wp.Tape() as tape:\n    pass\n", True),
        ("from warp import Tape\n", True),
        ("wp.launch(k, 1, adjoint=True)\n", True),
        ("wp.launch(k, 1, adjoint=False)\n", False),
    ],
)
def test_reaching_a_tape_is_decided_on_code(programs, text, expected):
    main = "\nif __name__ == '__main__':\n    pass\n"
    found = programs({"a.py": "import warp as wp\n" + text + main, "b.py": TAPED})
    assert [p.reaches_tape for p in found if p.file == "a.py"] == [expected]


def test_an_entry_of_the_command_line(programs, tmp_path):
    programs({"jobs/train.py": TAPED, "jobs/other.py": ""})
    program = program_for_entry("jobs/train.py --small 'two words'", tmp_path)
    assert program.file == "jobs/train.py"
    assert program.arguments == ("--small", "two words")
    assert program.working_directory == "."
    assert program.reaches_tape


MAIN = "\nif __name__ == '__main__':\n    train()\n"
PACKAGE = {
    "lib/pkg/__init__.py": "",
    "lib/pkg/core.py": TAPED,
    "lib/pkg/relative.py": "import warp\nfrom .core import train\n" + MAIN,
    "lib/pkg/own.py": "import warp\nfrom pkg.core import train\n" + MAIN,
    "lib/pkg/__main__.py": "import warp\nfrom .core import train\n" + MAIN,
    "lib/pkg/alone.py": TAPED + MAIN,
}


def test_a_program_that_imports_its_own_package_is_run_as_a_module(programs):
    found = {p.file: (p.module, p.working_directory) for p in programs(PACKAGE)}
    assert found == {
        "lib/pkg/__main__.py": ("pkg", "lib"),
        "lib/pkg/alone.py": (None, "lib/pkg"),
        "lib/pkg/own.py": ("pkg.own", "lib"),
        "lib/pkg/relative.py": ("pkg.relative", "lib"),
    }


def test_a_module_as_an_entry(programs, tmp_path):
    programs(PACKAGE)
    for directory, start in ((tmp_path / "lib", tmp_path), (None, tmp_path / "lib")):
        program = program_for_entry("-m pkg.relative --small", start, directory=directory)
        assert (program.module, program.arguments) == ("pkg.relative", ("--small",))
        assert program.file == ("lib/pkg/relative.py" if start == tmp_path else "pkg/relative.py")
        assert program.working_directory == ("lib" if start == tmp_path else ".")
    assert program_for_entry("-m pkg", tmp_path / "lib").file == "pkg/__main__.py"


@pytest.mark.parametrize("entry", ["-m", "-m pkg.gone", "-m 'not a name'", "-m pkg/core.py", "lib"])
def test_no_such_module(entry, programs, tmp_path):
    programs(PACKAGE)
    with pytest.raises(SourceError) as error:
        program_for_entry(entry, tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("entry", ["missing.py --x", "", "a.py 'unclosed"])
def test_a_bad_entry_is_one_clear_line(entry, tmp_path):
    with pytest.raises(SourceError) as error:
        program_for_entry(entry, tmp_path)
    assert "\n" not in str(error.value)


def test_a_bare_script_that_only_calls_what_it_imports(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kern.py").write_text(
        "import warp as wp\n\n\ndef train():\n    with wp.Tape() as tape:\n        wp.launch(k, 1)\n"
    )
    (tmp_path / "run.py").write_text("from pkg.kern import train\n\ntrain()\n")
    (tmp_path / "setup.py").write_text("from setuptools import setup\n\nsetup(name='pkg')\n")
    files = discover([tmp_path], root=tmp_path).files
    assert [p.file for p in find_programs(files, tmp_path)] == ["run.py"]
