"""WL501: a backward pass adds to gradients that an earlier one left."""

from __future__ import annotations

import ast
from typing import Any

from warplint.model import Counterfactual, Location
from warplint.probe.causes.base import Named, Naming, listed, location
from warplint.probe.facts import Paths


class KeptGradients(Naming):
    kind = Counterfactual.ZERO_GRADIENTS

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        names = [cause["parameter_name"]] if cause["parameter"] else []
        names += [n for n in cause["buffers"] if n and n not in names]
        subject = listed(names or ["an array"])
        call = "this adjoint launch" if cause["manual"] else "backward()"
        if cause["again"]:
            message = (
                f"backward() is called again on the same recording, so the gradient of {subject} doubles"
            )
        elif cause["copied"] and not cause["parameter"]:
            message = (
                f"the gradient of {subject} is not empty when {call} adds to it: the copy took along what an "
                f"earlier backward pass left in that of {listed(cause['copied'])}"
            )
        else:
            message = (
                f"the gradient of {subject} still holds what an earlier backward pass left when {call} "
                "adds to it"
            )
        zero = "zero the adjoint arrays" if cause["manual"] else "call tape.zero() (or zero the gradients)"
        place = _place(cause, paths)
        help = f"{zero} once the gradient has been used, before the next backward pass"
        if not cause["manual"] and b".zero()" in _text(place, paths):
            help = (
                "the tape.zero() that is there does not reach it: call it on the tape that ran backward,"
                " after the gradient has been used and before that tape is reset"
            )
        return Named(
            rule="WL501",
            message=message,
            location=place,
            related=(),
            help=help,
            removal=f"gradient of {subject} zeroed before {call}",
        )


def _text(place: Location, paths: Paths) -> bytes:
    try:
        return paths.read(paths.absolute(place.file))
    except (OSError, ValueError):
        return b""


def _place(cause: dict[str, Any], paths: Paths) -> Location:
    """The backward call; of a manual adjoint launch the line of the array that was not zeroed."""
    found = location(cause["stack"], paths)
    if cause["argument"] is None:
        return found
    try:
        tree = ast.parse(_text(found, paths))
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno == found.line:
            for keyword in node.keywords:
                if keyword.arg == "adj_inputs" and isinstance(keyword.value, (ast.List, ast.Tuple)):
                    elements = keyword.value.elts
                    if cause["argument"] < len(elements):
                        return Location(found.file, elements[cause["argument"]].lineno)
    return found
