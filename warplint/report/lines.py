"""Text of programs, files and exceptions, made safe for one line of a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """Show line ends and other control characters as Python would write them: ``\\n``, ``\\x1b``.

    They would break a format of one line a result, and a terminal obeys them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
