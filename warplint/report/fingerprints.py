"""Line fingerprints as GitHub's upload action computes them.

Code scanning follows an alert through edits by `primaryLocationLineHash`. The upload action
fills it in where a report lacks it, so a report that carries another value than the action
would compute opens the same alert twice. The value is a polynomial hash of the 100
characters that start at the line, blanks and tabs left out, any line end counted as one
line feed; arithmetic wraps at 64 bits, and equal hashes are told apart by a count.
Characters are UTF-16 code units and a byte order mark counts, as both do there.
"""

from __future__ import annotations

_WINDOW = 100
_BASE = 37
_MASK = (1 << 64) - 1
_OLDEST = pow(_BASE, _WINDOW, 1 << 64)
_END = 65535
_SKIPPED = (ord(" "), ord("\t"))
_LF, _CR = ord("\n"), ord("\r")


def line_hashes(text: str) -> list[str]:
    """The fingerprint of each line of ``text``, first line first."""
    units = _units(text)
    starts = _line_starts(units)
    # Zeros before the text take no part; zeros after it fill the last windows.
    padded = units + [0] * _WINDOW
    hashes: list[str] = []
    seen: dict[int, int] = {}
    value = 0
    position = 0
    for start in starts:
        while position < start + _WINDOW:
            leaving = padded[position - _WINDOW] if position >= _WINDOW else 0
            value = (value * _BASE + padded[position] - leaving * _OLDEST) & _MASK
            position += 1
        seen[value] = seen.get(value, 0) + 1
        hashes.append(f"{value:x}:{seen[value]}")
    return hashes


def _units(text: str) -> list[int]:
    """The code units that are hashed, with the end mark."""
    raw = text.encode("utf-16-le", "surrogatepass")
    units: list[int] = []
    after_cr = False
    for low, high in zip(raw[::2], raw[1::2], strict=True):
        unit = low | high << 8
        if unit in _SKIPPED or (after_cr and unit == _LF):
            after_cr = False
            continue
        after_cr = unit == _CR
        units.append(_LF if after_cr else unit)
    units.append(_END)
    return units


def _line_starts(units: list[int]) -> list[int]:
    return [0, *(index + 1 for index, unit in enumerate(units[:-1]) if unit == _LF)]
