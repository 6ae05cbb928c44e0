"""However a program is laid out in lines, files and packages: the same finding at the same place."""

from __future__ import annotations

import pytest

KERNELS = """\
import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i])
"""
MAIN = """\
import warp as wp
from kernels import square, total

x = wp.zeros(3, dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, 3, [x], [y])
    wp.launch(square, 3, [y], [x])  # here
    wp.launch(total, 3, [x], [loss])
tape.backward(loss)
"""
RULE = "WL103"
STEP = """\
        wp.launch(square, 3, [x], [y])
        wp.launch(square, 3, [y], [x])  # here
"""
TRAIN = """\
import warp as wp
from kernels import square, total
{definition}

x = wp.zeros(3, dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    {call}(x, y)
    wp.launch(total, 3, [x], [loss])
tape.backward(loss)
"""
DEFINITIONS = {
    "a method below a text at the left margin": (
        'class Sim:\n    NOTE = """\nat the margin\n"""\n\n    def step(self, x, y):\n' + STEP,
        "Sim().step",
    ),
    "a class whose header takes several lines": (
        "class Base:\n    pass\n\n\nclass Sim(\n    Base,\n):  # a comment\n\n    # another\n"
        "    def step(self, x, y):\n" + STEP,
        "Sim().step",
    ),
    "a class on one line": (
        "def step(self, x, y):\n    if True:\n" + STEP + "\n\nclass Sim: go = step",
        "Sim().go",
    ),
    "a decorator over several lines": (
        "import functools\n\n\nclass Sim:\n    @functools.lru_cache(\n        maxsize=None,\n    )\n"
        "    def step(self, x, y):\n" + STEP,
        "Sim().step",
    ),
    "defined twice, the last one counts": (
        "def step(x, y):\n    pass\n\n\ndef step(x, y):\n    if True:\n" + STEP,
        "step",
    ),
    "defined under a condition": (
        "try:\n    import fast\nexcept ImportError:\n    def step(x, y):\n" + STEP,
        "step",
    ),
    "a decorator of the project that keeps the function": (
        "KEPT = {}\n\n\ndef keep(f):\n    KEPT['it'] = f\n    return f\n\n\n"
        "@keep\ndef step(x, y):\n    if True:\n" + STEP,
        "KEPT['it']",
    ),
    "statements that share a line": (
        "import os; PLACE = 1\nN = 2; import sys\n\n\ndef step(x, y):\n    if True:\n" + STEP,
        "step",
    ),
    "an asynchronous neighbour and a continued line": (
        "async def other():\n    await thing\n\n\ndef step(x, \\\n        y):\n    if True:\n" + STEP,
        "step",
    ),
}


def place(text: str) -> int:
    return next(k for k, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_layout(name, line_end, run, write):
    definition, call = DEFINITIONS[name]
    text = TRAIN.format(definition=definition, call=call)
    root = write({"kernels.py": KERNELS})
    (root / "main.py").write_bytes(text.replace("\n", line_end).encode())
    result = run({})
    assert [(f.rule, f.location.file, f.location.line) for f in result.findings] == [
        (RULE, "main.py", place(text))
    ]


PACKAGES = {
    "names handed on by a package": {
        "pkg/__init__.py": "from .deep import *\nfrom .deep import launches as go\n",
        "pkg/deep/__init__.py": "from .. import shared\nfrom .work import launches\n__all__ = ['launches']\n",
        "pkg/shared.py": "from kernels import square as kernel\n",
        "pkg/deep/work.py": "import warp as wp\nfrom ..shared import kernel\n\n\ndef launches(x, y):\n"
        "    if True:\n" + STEP.replace("square", "kernel"),
        "main.py": TRAIN.format(definition="import pkg", call="pkg.go"),
    },
    "two modules that import each other": {
        "one.py": "import two\nfrom kernels import square as kernel\n\n\n"
        "def run(x, y):\n    two.launches(x, y)\n",
        "two.py": "import warp as wp\nimport one\n\n\ndef launches(x, y):\n    if True:\n"
        + STEP.replace("square", "one.kernel"),
        "main.py": TRAIN.format(definition="from one import run", call="run"),
    },
    "a module that only registers what it holds": {
        "table.py": "import warp as wp\n\nSTEPS = {}\n",
        "steps.py": "import warp as wp\nfrom kernels import square\nfrom table import STEPS\n\n\n"
        "def launches(x, y):\n    if True:\n" + STEP + "\n\nSTEPS['two'] = launches\n",
        "main.py": TRAIN.format(definition="import steps\nfrom table import STEPS", call="STEPS['two']"),
    },
    "an import inside of a function": {
        "work.py": "import warp as wp\n\n\ndef launches(x, y):\n    from kernels import square\n"
        "    if True:\n" + STEP,
        "main.py": TRAIN.format(
            definition="def late(x, y):\n    import work\n    work.launches(x, y)\n", call="late"
        ),
    },
    "a dotted import": {
        "a/__init__.py": "",
        "a/b/__init__.py": "",
        "a/b/c.py": "import warp as wp\nfrom kernels import square\n\n\ndef launches(x, y):\n    if True:\n"
        + STEP,
        "main.py": TRAIN.format(definition="import a.b.c\nimport a.b", call="a.b.c.launches"),
    },
}


@pytest.mark.parametrize("name", PACKAGES)
def test_files(name, findings):
    files = {"kernels.py": KERNELS, **PACKAGES[name]}
    (found,) = findings(files)
    at = next(n for n, text in files.items() if "# here" in text)
    assert (found.rule, found.location.file, found.location.line) == (RULE, at, place(files[at]))


def test_what_is_not_used_is_not_parsed(write, tmp_path, monkeypatch):
    import libcst

    from warplint.source import discover, find_programs
    from warplint.static import analyze

    unused = "".join(f"\n\ndef unused_{k}(x):\n    return [x + {k}, wp.sin(x)]\n" for k in range(200))
    root = write({"kernels.py": KERNELS + unused, "main.py": MAIN + unused})
    parsed = []
    original = libcst.parse_module
    monkeypatch.setattr(libcst, "parse_module", lambda text: parsed.append(text) or original(text))
    found = discover(["."], root=root)
    result = analyze(found.files, find_programs(found.files, root), root=root)
    assert [f.rule for f in result.findings] == [RULE]
    assert not any("unused" in text for text in parsed)
