"""Whatever the text is: no exception, and always an end."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from static_prelude import PRELUDE
from test_static_variants import VARIANTS
from test_static_variants import files as variant_files

PROGRAM = (
    PRELUDE
    + """
class Sim:
    def __init__(self, steps=6):
        self.states = [grad() for _ in range(steps + 1)]
        self.k = wp.array([0.2], dtype=float, requires_grad=True)
        self.force, self.loss = grad(), grad(1)
        self.steps = steps

    def forward(self):
        for s in range(self.steps):
            self.force.zero_()
            wp.launch(accumulate, dim=3, inputs=[self.states[s]], outputs=[self.force])
            if s % 2 == 0 and self.k is not None:
                wp.launch(step, dim=3, inputs=[self.force, self.k], outputs=[self.states[s + 1]])
            else:
                self.states[s + 1] = wp.clone(self.states[s])
        wp.launch(total, dim=3, inputs=[self.states[-1]], outputs=[self.loss])


def main():
    sim = Sim()
    for epoch in range(3):
        with wp.Tape() as tape:
            sim.forward()
        tape.backward(sim.loss)
        tape.zero()


if __name__ == "__main__":
    main()
"""
)
LINES = PROGRAM.splitlines()
SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
RELAXED = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=SUPPRESSED,
)


def test_the_program_itself_is_found(findings):
    assert [f.rule for f in findings({"program.py": PROGRAM})] == ["WL105"]


@RELAXED
@given(end=st.integers(0, len(PROGRAM)))
def test_truncated(end, run):
    assert run({"program.py": PROGRAM[:end]}).internal_errors == ()


@RELAXED
@given(data=st.data())
def test_lines_lost_and_repeated(data, run):
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        if data.draw(st.booleans()):
            del lines[at]
        else:
            lines.insert(at, data.draw(st.sampled_from(LINES)))
    assert run({"program.py": "\n".join(lines)}).internal_errors == ()


TOKENS = ["self.states", "wp.launch", "[s + 1]", "range", "None", "self", "3", "grad()", "sim", "tape", "()"]


@RELAXED
@given(data=st.data())
def test_words_replaced(data, run):
    text = PROGRAM
    for _ in range(data.draw(st.integers(1, 3))):
        old, new = data.draw(st.sampled_from(TOKENS)), data.draw(st.sampled_from(TOKENS))
        text = text.replace(old, new, data.draw(st.integers(1, 3)))
    assert run({"program.py": text}).internal_errors == ()


@settings(max_examples=60, deadline=None, suppress_health_check=SUPPRESSED)
@given(data=st.data())
def test_shapes_of_host_code_broken_in_any_way(data, run):
    """Classes, generators, context managers … cut, shuffled and mixed with each other's lines."""
    name = data.draw(st.sampled_from(sorted(VARIANTS)))
    files = variant_files(name, 0)
    broken = data.draw(st.sampled_from(sorted(files)))
    lines = files[broken].splitlines()
    others = [
        line
        for text in variant_files(data.draw(st.sampled_from(sorted(VARIANTS))), 0).values()
        for line in text.splitlines()
    ]
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, max(0, len(lines) - 1)))
        change = data.draw(st.sampled_from(["cut", "drop", "repeat", "mix", "swap"]))
        if change == "cut":
            lines = lines[:at]
        elif change == "drop":
            del lines[at : at + 1]
        elif change == "repeat":
            lines[at:at] = lines[at : at + 1]
        elif change == "mix":
            lines.insert(at, data.draw(st.sampled_from(others)))
        elif lines:
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
    files[broken] = "\n".join(lines)
    assert run(files).internal_errors == ()


ENDLESS = {
    "while": "while True:\n    wp.launch(square, 3, [x], [y])\n",
    "recursion": "def f(n):\n    return f(n + 1) + f(n + 2)\n\n\nf(0)\n",
    "mutual recursion": "def f(n):\n    return g(n) + g(n)\n\n\n"
    "def g(n):\n    return f(n) + f(n)\n\n\nf(0)\n",
    "nested loops": "for a in range(10**9):\n  for b in range(10**9):\n    for c in range(10**9):\n"
    "      for d in range(10**9):\n        for e in range(10**9):\n          y = wp.clone(x)\n",
    "growing list": "l = [x]\nwhile True:\n    l = l + l\n",
    "growing number": "n = 2\nwhile True:\n    n = n ** n\n    m = 1 << n\n    s = 'a' * n\n",
    "huge comprehension": "l = [wp.zeros(3) for _ in range(10**12)]\n",
    "self-containing list": "l = [x]\nl.append(l)\nd = {}\nd['d'] = d\nm = l\nm[0] = m\n",
    "endless generator": "def g(n):\n    while True:\n        yield n\n        n = n + 1\n\n\n"
    "for a in g(0):\n    for b in g(a):\n        wp.launch(square, 3, [x], [y])\n",
    "generators of themselves": "def g(n):\n    yield from g(n + 1)\n    yield n\n\n\nz = list(g(0))\n",
    "undecided branches": "import other\n" + "if other.a:\n    x = y\nelse:\n    y = x\n" * 60,
    "nested undecided branches": "import other\n"
    + "".join("    " * d + "if other.a:\n" for d in range(18))
    + "    " * 18
    + "x = y\n",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_always_ends(name, run):
    start = time.perf_counter()
    body = "x, y, loss = grad(), grad(), grad(1)\nwith wp.Tape() as tape:\n    pass\n" + ENDLESS[name]
    result = run({"program.py": PRELUDE + body + "tape.backward(loss)\n"})
    assert result.internal_errors == ()
    assert time.perf_counter() - start < 15.0


def test_many_functions_share_what_a_file_may_cost(run, monkeypatch):
    function = "def f{}():\n    x, y = grad(), grad()\n    with wp.Tape() as tape:\n"
    function += "        wp.launch(square, 3, [x], [y])\n    tape.backward(grads={{y: grad()}})\n\n\n"
    text = PRELUDE + "".join(function.format(k) for k in range(20))
    assert run({"program.py": text}).skipped == ()
    monkeypatch.setattr("warplint.static.run._FILE_STEPS", 500)
    (line,) = run({"program.py": text}).skipped
    assert line.endswith("and what follows (too much work)")


def test_a_bad_file_is_a_record_and_the_others_are_checked(write, run):
    result = run(
        {
            "program.py": PROGRAM,
            "broken.py": "import warp as wp\ntape = wp.Tape(\n",
            "latin.py": "import warp\n",
        }
    )
    assert [f.rule for f in result.findings] == ["WL105"]


def test_nothing_heavy_is_imported_before_a_file_passes_the_screen(tmp_path):
    (tmp_path / "plain.py").write_text("print('hello')\n", encoding="utf-8")
    code = (
        "import sys\n"
        "from warplint.source import discover, find_programs\n"
        "from warplint.static import analyze\n"
        f"found = discover(['.'], root={str(tmp_path)!r})\n"
        f"analyze(found.files, find_programs(found.files, found.root), root={str(tmp_path)!r})\n"
        "print([m for m in ('libcst', 'networkx', 'warp', 'numpy') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
