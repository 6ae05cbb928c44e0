"""Versions of Warp: what is wrong in some of them, and which of them a requirement means."""

from __future__ import annotations

import re
from collections.abc import Iterable

Version = tuple[int, int]
"""Major and minor number: what is wrong in Warp has never changed within one of them."""

OLDEST, NEWEST = (1, 13), (1, 19)
"""Versions of Warp that warplint is tested with."""
TESTED: tuple[Version, ...] = tuple((1, minor) for minor in range(OLDEST[1], NEWEST[1] + 1))

_CLAUSE = re.compile(r"\s*(===|==|~=|!=|<=|>=|<|>|\^|~)?\s*v?(\d+)(?:\.(\d+|\*))?(\S*)\s*")


def concern(bounds: str, version: Version | None) -> bool:
    """Whether something that is so within ``bounds`` (``>=1.15,<1.18``) is so for a version of Warp.

    What is so everywhere has no bounds, or ``any``. A version that is not known is the newest.
    """
    return bounds in ("", "any") or _within(bounds, version or NEWEST)


def parse(text: str) -> Version | None:
    """``1.16.0`` as it is compared here."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def allowed(specifiers: Iterable[str]) -> frozenset[Version]:
    """The tested versions that a project's requirements leave; none where they leave none of these.

    Requirements that contradict each other belong to different installations.
    """
    sets = [frozenset(v for v in TESTED if _within(text, v)) for text in specifiers]
    both = sets[0].intersection(*sets) if sets else frozenset()
    return both or frozenset[Version]().union(*sets)


def _within(bounds: str, version: Version) -> bool:
    return all(_holds(clause, version) for clause in bounds.split(",") if clause.strip())


def _holds(clause: str, version: Version) -> bool:
    found = _CLAUSE.fullmatch(clause)
    if found is None:
        return True  # nothing that can be understood rules nothing out
    operator, major, minor, rest = found[1] or "==", int(found[2]), found[3], found[4]
    if minor in (None, "*"):
        bound, own = (major, 0), (version[0], 0)
        if operator in ("^", "~=", "~"):
            return version[0] == major
    else:
        bound, own = (major, int(minor)), version
    patch = rest.lstrip(".") not in ("", "*", "0")
    return {
        "==": own == bound,
        "===": own == bound,
        "!=": own != bound or patch,
        "<": own < bound or (patch and own == bound),
        "<=": own <= bound,
        ">": own > bound or (patch and own == bound),
        ">=": own >= bound,
        "^": own >= bound and version[0] == major,
        "~": own == bound,
        "~=": own == bound if rest else own >= bound and version[0] == major,
    }[operator]
