"""Line hashes: values that GitHub's upload action computes for the same text."""

from __future__ import annotations

import pytest

from warplint.report.fingerprints import line_hashes

KNOWN = [
    ("", ["c129715d7a2bc9a3:1"]),
    (
        " a\nb\n  \t\tc\n d",
        ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"],
    ),
    (
        " hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End",
        [
            "8b7cf3e952e7aeb2:1",
            "b1ae1287ec4718d9:1",
            "bff680108adb0fcc:1",
            "c6805c5e1288b612:1",
            "b86d3392aea1be30:1",
            "e6ceba753e1a442:1",
        ],
    ),
]


@pytest.mark.parametrize(("text", "hashes"), KNOWN)
def test_known_values(text, hashes):
    assert line_hashes(text) == hashes


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_do_not_matter(end):
    text = "a\nb\n\nc"
    assert line_hashes(text.replace("\n", end)) == line_hashes(text)


def test_blanks_do_not_matter():
    assert line_hashes("x = 1\n\ty = 2\n") == line_hashes("x=1\n        y   =   2\n")


def test_a_line_keeps_its_hash_when_lines_before_it_change():
    tail = "".join(f"line number {n} of a longer file\n" for n in range(20))
    before = line_hashes(f"one\n{tail}")
    after = line_hashes(f"one\nanother\nand another\n{tail}")
    assert before[1:] == after[3:]


def test_equal_lines_are_counted():
    text = "same\n" * 60
    values = [item.split(":") for item in line_hashes(text)]
    assert len({tuple(item) for item in values}) == len(values)
    assert values[0] == [values[1][0], "1"]
    assert values[1][1] == "2"


def test_surrogate_pairs_and_byte_order_mark_count_as_code_units():
    assert line_hashes("\N{GRINNING FACE}") != line_hashes("x")
    assert line_hashes("\ufeffa") != line_hashes("a")


def test_naive_definition_agrees():
    text = "def f(x):\n    return x\n" * 9 + "é\N{GRINNING FACE}\r\nend"
    units = []
    raw = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-16-le")
    for at in range(0, len(raw), 2):
        unit = int.from_bytes(raw[at : at + 2], "little")
        if unit not in (32, 9):
            units.append(unit)
    units.append(65535)
    starts = [0] + [i + 1 for i, unit in enumerate(units) if unit == 10]
    for start, got in zip(starts, line_hashes(text), strict=True):
        value = 0
        for unit in (units[start:] + [0] * 100)[:100]:
            value = (value * 37 + unit) % 2**64
        assert got.split(":")[0] == f"{value:x}"
