"""Names a cause that only the run saw: which rule it breaks and what to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warplint.model import Location, Related
from warplint.probe.facts import Paths


@dataclass(frozen=True)
class Named:
    """A run-time cause in the words of a rule."""

    rule: str
    message: str
    location: Location
    related: tuple[Related, ...]
    help: str
    removal: str
    """The counterfactual in words: what was taken away."""


def describe(cause: dict[str, Any], paths: Paths) -> Named:
    """The rule, the sentence and the places for a cause confirmed by the probe."""
    if cause["kind_of_cause"] == "no-gradient":
        return _without_gradient(cause, paths)
    return _overwrite(cause, paths)


def _without_gradient(cause: dict[str, Any], paths: Paths) -> Named:
    buffer = cause["buffer"] or "an array"
    writer, reader = cause["writer"], cause["reader"]
    location = _location(cause["stack"], paths)
    related = []
    if writer["stack"]:
        related.append(
            Related(_location(writer["stack"], paths), f"written here, by {_by(writer['kernel'])}")
        )
    if reader["stack"]:
        related.append(Related(_location(reader["stack"], paths), f"read here, by {_by(reader['kernel'])}"))
    return Named(
        rule="WL201",
        message=(
            f"`{buffer}` is allocated without requires_grad but carries the derivative from "
            f"{_by(writer['kernel'])} to {_by(reader['kernel'])}: the gradient stops there"
        ),
        location=location,
        related=tuple(related),
        help=f"allocate `{buffer}` with requires_grad=True",
        removal=f"`{buffer}` allocated with requires_grad=True",
    )


def _overwrite(cause: dict[str, Any], paths: Paths) -> Named:
    names = [b for b in cause["buffers"] if b] or ["an array"]
    buffer = names[0]
    all_of_them = " and ".join(f"`{n}`" for n in names[:3])
    location = _location(cause["stack"], paths)
    readers = [r for r in cause["readers"] if r["argument"]] or cause["readers"]
    foreign = [r for r in readers if not r["own"]]
    reader = (foreign or readers or [None])[0]
    related = []
    if reader is not None and reader["stack"]:
        place = _location(reader["stack"], paths)
        if place != location:
            related.append(Related(place, f"read here, by {_by(reader['kernel'])}"))
    kernel = cause["kernel"]
    action = {
        "launch": f"by {_by(kernel)}" if kernel else "by a launch",
        "copy": "by a copy",
        "assign": "by assign()",
        "zero": "by zero_()",
        "fill": "by fill_()",
        "unseen": "through a view of its memory",
    }[cause["kind"]]
    needed = f"the backward pass of {_by(reader['kernel'])}" if reader else "the backward pass"
    rule, help_text = _rule_of(cause, foreign)
    if rule == "WL105":
        message = (
            f"{all_of_them} is reset {action} while the tape is recording, after earlier steps used it: "
            f"{needed} then sees the value and the adjoint of the wrong step"
        )
    elif rule == "WL104":
        message = (
            f"{all_of_them} is both read and written {action}: the backward pass evaluates the kernel at "
            f"the values it left behind"
        )
    else:
        verb = "is" if len(names) == 1 else "are"
        message = f"{all_of_them} {verb} overwritten {action}, but {needed} still needs the old value"
    return Named(
        rule=rule,
        message=message,
        location=location,
        related=tuple(related),
        help=help_text.format(buffer=buffer),
        removal=f"overwrite of {all_of_them} {action}",
    )


def _rule_of(cause: dict[str, Any], foreign: list[dict[str, Any]]) -> tuple[str, str]:
    kind = cause["kind"]
    if kind != "launch" and cause["on_tape"] and not cause["recorded"] and kind != "unseen":
        return "WL105", "allocate a fresh `{buffer}` for every step instead of clearing one"
    if kind == "unseen" or not cause["on_tape"]:
        return "WL901", "do not change `{buffer}` between recording it and calling backward()"
    own = [r for r in cause["readers"] if r["own"]]
    here = [list(f[:2]) for f in cause["stack"][:1]]
    if own and cause["aliased"]:
        return "WL104", "write the result of each step to an array of its own"
    if own and not foreign:
        return (
            "WL901",
            "write the result of the kernel to a second array instead of updating `{buffer}` in place",
        )
    if any([list(f[:2]) for f in r["stack"][:1]] == here for r in foreign):
        return "WL103", "keep one array per step (a list of states) instead of reusing `{buffer}`"
    return "WL101", "write to a fresh array, so that the value `{buffer}` had stays readable until backward()"


def _by(kernel: str | None) -> str:
    if kernel in ("copy", "assign"):
        return f"{kernel}()"
    return f"`{kernel}`" if kernel else "a launch"


def _location(stack: list[Any], paths: Paths) -> Location:
    if not stack:
        return Location("?", 1)
    file, line = stack[0][:2]
    return Location(paths.display(str(file)), int(line))
