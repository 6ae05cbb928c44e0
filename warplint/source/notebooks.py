"""Jupyter notebooks as Python: the code cells one after the other, and the way back to a cell's line.

Nothing but Python is left: magics and shell lines become statements that do nothing. Cells are
counted from 1, Markdown included, as a reader of the notebook counts them.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

from warplint.model import Location, Related, Result

__all__ = ["Notebook", "is_notebook", "read_notebook"]

_TIMED = re.compile(r"(?P<indent>\s*)%(time|timeit|prun)\s+(?:-\w+\s*\d*\s+)*(?=\S)")
"""A magic that runs the statement after it."""
_MAGIC = re.compile(r"(?P<indent>\s*)(?:[%!]|\?+\s*[\w.]+\s*$|[\w.]+\?{1,2}\s*$)")
_ASSIGNED = re.compile(r"(?P<target>\s*[\w., ]+=\s*)(?:![^=]|%\w)")
_WITH_CODE = frozenset({"time", "timeit", "prun", "capture", "debug"})
"""Cell magics below which there is Python of this notebook."""
_LINE = re.compile(r"\bline (\d+)\b")


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook."""

    text: str
    starts: tuple[int, ...] = ()
    """The line of ``text`` on which each code cell begins."""
    numbers: tuple[int, ...] = ()
    """The number of each code cell in the notebook."""
    problem: str | None = None

    def cell_line(self, line: int) -> tuple[int, int]:
        """The cell and its line for a line of the text."""
        position = max(0, bisect_right(self.starts, line) - 1)
        return self.numbers[position], line - self.starts[position] + 1

    def placed(self, result: Result, file: str) -> Result:
        """A result with its places in ``file``, this notebook, by cell."""
        if not self.starts:
            return result
        own = result.location.file == file

        def named(match: re.Match[str]) -> str:
            cell, line = self.cell_line(int(match[1]))
            return f"cell {cell}, line {line}"

        def words(text: str, here: bool) -> str:
            text = re.sub(
                rf"{re.escape(file)}:(\d+)",
                lambda m: "{}:cell {}:{}".format(file, *self.cell_line(int(m[1]))),
                text,
            )
            return _LINE.sub(named, text) if here else text

        return replace(
            result,
            message=words(result.message, own),
            location=self._location(result.location) if own else result.location,
            related=tuple(
                Related(self._location(site.location), words(site.message, True))
                if site.location.file == file
                else site
                for site in result.related
            ),
            fix=None if own else result.fix,  # its edits would be of this text, not of the notebook
        )

    def _location(self, place: Location) -> Location:
        cell, line = self.cell_line(place.line)
        return replace(place, line=line, end_line=line + place.end_line - place.line, cell=cell)


def is_notebook(name: str) -> bool:
    return name.endswith(".ipynb")


def read_notebook(data: bytes) -> Notebook:
    """The Python of a notebook; one in another language has none."""
    try:
        document = json.loads(data.decode("utf-8-sig"))
        version, cells = document["nbformat"], document["cells"] if document["nbformat"] >= 4 else []
        language = _language(document.get("metadata", {}))
        sources = [
            (number, _source(cell)) for number, cell in enumerate(cells, 1) if cell["cell_type"] == "code"
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Notebook("", problem="not a Jupyter notebook")
    if version < 4:
        return Notebook("", problem=f"notebooks of format {version} are not supported, only 4 or newer")
    if language not in ("", "python", "ipython"):
        return Notebook("")
    lines: list[str] = []
    starts, numbers = [], []
    for number, source in sources:
        starts.append(len(lines) + 1)
        numbers.append(number)
        lines += _python(source)
    return Notebook("\n".join([*lines, ""]), tuple(starts), tuple(numbers))


def cell_source(data: bytes, number: int) -> str | None:
    """The text of a cell, as it stands in the notebook."""
    try:
        return _source(json.loads(data.decode("utf-8-sig"))["cells"][number - 1])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def all_cells(data: bytes) -> str:
    """The text of all cells, as it stands in the notebook."""
    try:
        return "\n".join(_source(cell) for cell in json.loads(data.decode("utf-8-sig"))["cells"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""


def file_line(data: bytes, number: int, line: int) -> int:
    """The line of the file on which a line of a cell stands; 1 where they are not written that way."""
    source = cell_source(data, number)
    if source is None or not 0 < line <= len(source.split("\n")):
        return 1
    text = data.decode("utf-8-sig", "replace").split("\n")
    cells = json.loads(data.decode("utf-8-sig"))["cells"]
    at = 0
    for cell in cells[:number]:
        for piece in cell["source"] if isinstance(cell["source"], list) else [cell["source"]]:
            spellings = {json.dumps(piece), json.dumps(piece, ensure_ascii=False)}
            found = next(
                (
                    k
                    for k in range(at, len(text))
                    if text[k].strip().rstrip(",").removeprefix('"source": ') in spellings
                ),
                None,
            )
            if found is None:
                return 1
            at = found + 1
            if cell is cells[number - 1]:
                line -= 1
                if line == 0:
                    return at
    return 1


def _language(metadata: Any) -> str:
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(key, {}).get(name)
        if isinstance(found, str):
            return found.lower()
    return ""


def _source(cell: Any) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _python(source: str) -> list[str]:
    """The lines of a cell with nothing but Python in them."""
    lines = source.replace("\r\n", "\n").split("\n")
    if _parses(source):
        return lines
    first = next((k for k, line in enumerate(lines) if line.strip()), 0)
    cell_magic = re.match(r"\s*%%(\w+)", lines[first])
    if cell_magic:
        if cell_magic[1] not in _WITH_CODE:
            return [""] * len(lines)
        lines[first] = ""
    return _without_magics(lines)


def _without_magics(lines: list[str]) -> list[str]:
    done: list[str] = []
    for line in lines:
        if timed := _TIMED.match(line):
            # As long as the magic, so that columns stay what they are.
            width = timed.end() - len(timed["indent"])
            plain = timed["indent"] + "if 1".ljust(width - 2) + ": " + line[timed.end() :]
        elif magic := _MAGIC.match(line):
            plain = magic["indent"] + "pass"
        elif assigned := _ASSIGNED.match(line):
            plain = assigned["target"] + "None"
        else:
            plain = line
        if plain is not line and _goes_on(done):
            plain = line  # an operator, or a string
        done.append(plain)
    return done


def _goes_on(lines: list[str]) -> bool:
    """Whether the last of these lines is not the end of a statement."""
    if lines and lines[-1].endswith("\\"):
        return True
    try:
        for _ in tokenize.generate_tokens(io.StringIO("\n".join([*lines, ""])).readline):
            pass
    except IndentationError:
        return False
    except (tokenize.TokenError, SyntaxError):
        return True
    return False


def _parses(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
