"""The skeleton of a file says what its whole tree would have said, or is not there."""

from __future__ import annotations

import ast
import dis
import json.decoder
import pathlib
import subprocess
import textwrap
import tokenize
import typing
from pathlib import Path

import pytest

from warplint.source import facts
from warplint.source.facts import FileFacts
from warplint.source.skeleton import skeleton

TEXTS = {
    "imports in every place": """
        import a.b as c, d; import e
        from . import f
        from.g import(h)
        from ..i import (  # why
            j,  # this
            k as l,
        )
        if c: import m
        try:
            from n import \\
                o
        except ImportError: from p import *
        def work():
            import q
        """,
    "imports that are none": '''
        """
        import docstring
        """
        x = "import text"  # import comment
        y = """
        from a import b""" "import c"
        raise ValueError from x
        ''',
    "calls at the top and below": """
        from pkg import registry, tables
        registry.add("solver")
        tables.known["x"] = 1
        @registry.decorated(late)
        class A(base()):
            z = inside()
        def f(x=default()):
            return called()
        if __name__ == '__main__':
            main()
        """,
    "strings that look like ends": r"""
        a = 'it\'s' "b" '""' ; first()
        b = r"\"; second()" ''; third()
        c = "x""__main__"; d = '''"''' ; fourth()
        e = b"q" rb'w'  # " unbalanced
        fifth()
        """,
    "more of them": r'''
        a = '"""'; first()
        b = """'x' \""" ' """; second()
        c = "a""b"; third(); d = "a""b"
        fourth()
        ''',
    "lines that continue": """
        def f():
            return 1 + \\
        2
        x = [
        one(), two(
        )]
        def g(a,
        b=(
        3)):
            pass
        three()
        """,
    "formatted strings": """
        print(f"{shown()} {'import x'}")
        def f(tape):
            return f"{tape.loss}"
        """,
    "what handles a tape": "def f():\n    tape.backward()\n",
    "no tape": "# tape\ndef f():\n    'tape.backward()'\n    record_tape = 1\n",
    "other line ends": "import a\r\ndef f():\r\n    import b\r\ncall()\r",
    "other letters": "from größe import länge\nlänge()\n",
    "no Python": "import a\ndef f(:\n    pass\n",
    "no Python, seen late": "def f(x):\n    global x\n",
    "nothing": "",
}
SOURCES = [ast, dis, json.decoder, pathlib, subprocess, textwrap, tokenize, typing, facts]


def whole(text: str, monkeypatch) -> FileFacts:
    with monkeypatch.context() as patch:
        patch.setattr(facts, "skeleton", lambda *_: None)
        return FileFacts.of(text)


@pytest.mark.parametrize("name", TEXTS)
def test_same_facts(name, monkeypatch):
    text = textwrap.dedent(TEXTS[name])
    assert FileFacts.of(text) == whole(text, monkeypatch)


@pytest.mark.parametrize("module", SOURCES, ids=lambda module: module.__name__)
def test_same_facts_of_real_code(module, monkeypatch):
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert FileFacts.of(text) == whole(text, monkeypatch)


def test_most_files_have_one():
    texts = [Path(module.__file__).read_text(encoding="utf-8") for module in SOURCES]
    assert sum(skeleton(text, lambda code: "tape" in code) is not None for text in texts) >= 6


@pytest.mark.parametrize("name", ["what handles a tape", "other letters", "no Python", "formatted strings"])
def test_not_where_only_the_tree_tells(name):
    assert skeleton(textwrap.dedent(TEXTS[name]), lambda code: "tape" in code) is None


def test_only_code_is_asked_about():
    seen: list[str] = []
    skeleton("# tape\nx = 'tape'\n", lambda code: bool(seen.append(code)))
    assert "tape" not in seen[0]
