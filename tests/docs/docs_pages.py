"""What a page shows: commands with their output, and files.

A page says beside a block what it is, in a comment that readers of the site do not see:

- ```` ```console ````: lines that begin with ``$ `` are commands, what follows is their standard
  output. ``[…]`` on a line of its own stands for lines that are left out. A block without a ``$``
  holds commands only. ``<!-- not run: WHY -->`` above it excuses it, and so does ``<!-- ci: tests -->``,
  as that is what CI itself runs.
- ``<!-- file: NAME -->`` above a block: the block is a file that the reader makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ELIDED = "[…]"

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>not run|ci|file): (?P<about>.*?) -->\n+)?"
    r"```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Command:
    """One command line and the output that the page shows for it."""

    line: int
    text: str
    shown: str
    start: int
    """Where the shown output begins and ends in the page."""
    end: int
    tells: bool
    """Whether the block shows output at all."""


@dataclass(frozen=True)
class Block:
    """A fenced block with its mark."""

    line: int
    mark: str | None
    about: str
    language: str
    body: str
    start: int


def blocks(text: str) -> Iterator[Block]:
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield Block(
            line, match["mark"], match["about"] or "", match["language"], match["body"], match.start("body")
        )


def commands(block: Block) -> Iterator[Command]:
    """The commands of a ``console`` block."""
    tells = block.body.startswith("$ ")
    pattern = r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)" if tells else r"^(.+)\n()"
    for match in re.finditer(pattern, block.body, re.MULTILINE):
        line = block.line + 1 + block.body.count("\n", 0, match.start())
        start, end = block.start + match.start(2), block.start + match.end(2)
        yield Command(line, match[1], match[2], start, end, tells)


def gist(text: str) -> list[str]:
    """The words of an output without what differs between machines.

    Measured numbers and how many rows a table of them has; words alone are compared, as a line
    breaks elsewhere where a number is longer.
    """
    words: list[str] = []
    for line in text.splitlines():
        if re.search(r"\s{2}(differs|agrees|inconclusive)(\s{2}|:|$)", line):
            continue
        line = re.sub(r"\[ +", "[", re.sub(r" +\]", "]", line))  # NumPy's padding
        line = re.sub(r"-[0-9a-f]{8}\.py", "-#.py", line)
        line = re.sub(r"\d+ forward passes", "# forward passes", line)
        line = re.sub(r"WL\d{3}-WL\d{3}", "#", line)  # a family, which grows
        line = re.sub(r"-?\d+(\.\d+)*(e[-+]?\d+)?%|-?\d+\.[\d.]*(e[-+]?\d+)?|-?\d+e[-+]\d+", "#", line)
        words += line.split()
    return re.sub(r"step \d+ of \d+", "step #", " ".join(words)).split()


def same(shown: str, printed: str) -> bool:
    """Whether an output is what the page shows, apart from what it leaves out."""
    pieces = [gist(piece) for piece in re.split(r"^\s*\[…\]\n", shown, flags=re.MULTILINE)]
    words = gist(printed)
    if len(pieces) == 1:
        return pieces[0] == words
    first, *middle, last = pieces
    if words[: len(first)] != first or (last and words[-len(last) :] != last):
        return False
    place, end = len(first), len(words) - len(last)
    for piece in middle:
        found = [i for i in range(place, end - len(piece) + 1) if words[i : i + len(piece)] == piece]
        if not found:
            return False
        place = found[0] + len(piece)
    return place <= end


def pages(repository: Path) -> list[str]:
    """The pages that a reader follows: the README and everything written in ``docs``."""
    found = sorted(path.relative_to(repository).as_posix() for path in (repository / "docs").rglob("*.md"))
    return ["README.md", "CONTRIBUTING.md", *found]
