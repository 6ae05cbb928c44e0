"""Whether the code around a place speaks of a constant, or of a solver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from warplint.static.kernels.summary import Site
from warplint.static.syntax import Piece, SourceModule
from warplint.words import CONSTANT, DETACHED, FRAMES, LINES_ABOVE, METHOD, SOLVER

__all__ = ["says_meant", "says_solver"]

_DOCSTRING = re.compile(r"\A(?:[^\"']|#.*)*?(\"\"\"|''')(.*?)\1", re.DOTALL)


def says_meant(site: Site, callers: Sequence[Site] = (), name: str | None = None) -> bool:
    """Whether an operation, or the calls that lead to it, are said to hold something constant."""
    places = [site, *reversed(callers)][:FRAMES]
    text = "\n".join([name or "", *(words for place in places for words in _near(place))])
    if DETACHED.search(text) or CONSTANT.search(text):
        return True
    return any(METHOD.search(docstring) for place in places for docstring in _docstrings(place))


def says_solver(site: Site, callers: Sequence[Site] = (), name: str | None = None) -> bool:
    """Whether an operation is said to be an iteration of a solver."""
    places = [site, *reversed(callers)][:FRAMES]
    return bool(
        SOLVER.search("\n".join([name or "", *(w for p in places for w in _near(p, LINES_ABOVE - 2))]))
    )


def _near(place: Site, above: int = LINES_ABOVE) -> Iterator[str]:
    """The lines above a place and its own, and the names of the functions it is in."""
    line = place.module.location(place.node).line
    yield from place.module.lines[max(0, line - above - 1) : line]
    yield from (piece.name for piece in _around(place.module.pieces, line))


def _docstrings(place: Site) -> Iterator[str]:
    module: SourceModule = place.module
    line = module.location(place.node).line
    texts = ["\n".join(module.lines), *(module.text(p) for p in _around(module.pieces, line))]
    for text in texts:
        found = _DOCSTRING.match(text)
        if found is not None:
            yield found[2]


def _around(pieces: Sequence[Piece], line: int) -> Iterator[Piece]:
    """The definitions that a line stands in, outermost first."""
    for piece in pieces:
        if piece.kind in ("function", "class") and piece.first <= line <= piece.last:
            yield piece
            yield from _around(piece.members, line)
