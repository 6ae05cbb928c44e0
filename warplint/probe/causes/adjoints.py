"""WL110, WL205 to WL207, WL302 to WL306, WL401 to WL403: the adjoint of a kernel is wrong by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from warplint.model import Counterfactual, Finding, Location, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths
from warplint.probe.intent import says_surrogate

_NOT_FINITE = ("WL304", "WL305")
_LIKELIEST = (
    "WL207",
    "WL403",
    "WL401",
    "WL402",
    "WL303",
    "WL302",
    "WL110",
    "WL301",
    "WL108",
    "WL206",
    "WL205",
    "WL305",
    "WL304",
)
"""Which of several findings in one kernel is taken for the cause where no repair tells."""
_IN_PLACE = ("WL301", "WL108")
"""Predicted as overwrites: a value that the launch stored itself is missed by its adjoint alone."""
_MENDED_BY = {
    "components": ("WL302",),
    "custom-adjoint": ("WL401", "WL402"),
    "unrolled": ("WL303",),
    "tie": ("WL306",),
    "guarded": _NOT_FINITE,
}


class Adjoints(Naming):
    kind = Counterfactual.REPLACE_ADJOINT

    def matches(self, finding: Finding, cause: dict[str, Any], paths: Paths) -> bool:
        """A finding in this kernel whose kind of fault fits what the run saw of it."""
        request = finding.request
        if request is not None and finding.rule in _IN_PLACE:
            finding = replace(finding, request=replace(request, counterfactual=self.kind))
        if not super().matches(finding, cause, paths):
            return False
        mended = [rule for repair in cause["repairs"] for rule in _MENDED_BY[repair["what"]]]
        if mended:
            return finding.rule in mended
        if not cause["finite"]:
            # Divided by what the loop has not summed up, or by whatever an atomic operation returns.
            return finding.rule in (*_NOT_FINITE, "WL303", "WL206")
        return finding.rule not in _NOT_FINITE

    def choose(self, matching: list[Finding], cause: dict[str, Any], paths: Paths) -> list[Finding]:
        """The run tells a kernel from another, not two statements of one: one finding is confirmed."""
        lines = [line for repair in cause["repairs"] for line in repair.get("lines", ())]
        if lines:
            # The statement is known: what was predicted of another one is not confirmed with it.
            matching = [f for f in matching if _speaks_of(f, lines, paths)]
        order = _LIKELIEST if cause["finite"] else _LIKELIEST[::-1]
        return sorted(matching, key=lambda f: (order.index(f.rule), f.sort_key))[:1]

    def seen(self, cause: dict[str, Any], paths: Paths) -> tuple[Related, ...]:
        words = slot_words(cause)
        if not words:
            return ()
        for repair in cause["repairs"]:
            if repair["what"] == "guarded":
                file, line = repair["lines"][0]
                place = Location(paths.display(str(file)), int(line))
                return (Related(place, f"the {repair['name']} here is what makes it infinite or NaN{words}"),)
        launched = location(cause["stack"], paths)
        return (Related(launched, f"measured at this launch{words}"),)

    def note(self, cause: dict[str, Any], paths: Paths) -> str | None:
        if is_tie(cause):
            return self.describe(cause, paths).message
        for repair in cause["repairs"]:
            if repair.get("surrogate"):
                name = repair["name"]
                return f"`{name}` is piecewise constant: its adjoint is a surrogate for the derivative zero"
            if repair["what"] == "custom-adjoint" and says_surrogate(repair["place"], paths):
                name = repair["name"]
                return f"the custom adjoint of `{name}` is no derivative, as the code says: a surrogate"
        return None

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        kernel = cause["kernel"]
        launched = location(cause["stack"], paths)
        definition = Location(paths.display(str(cause["kernel_file"])), int(cause["kernel_line"]))
        related = (Related(launched, f"`{kernel}` is launched here"),)
        removal = f"the adjoint of `{kernel}` replaced by its measured derivative"
        for repair in cause["repairs"]:
            place = definition
            if repair.get("lines"):
                file, line = repair["lines"][0]
                place = Location(paths.display(str(file)), int(line))
            if repair["what"] == "tie":
                return Named(
                    "WL306",
                    f"`{kernel}` selects among numbers that are equal here: its adjoint is that of one "
                    "choice (or of all of them), and a finite difference is that of another",
                    definition,
                    related,
                    "use a smooth minimum or maximum (log-sum-exp) if ties are common",
                    removal,
                )
            if repair["what"] == "guarded":
                return Named(
                    "WL305",
                    f"the {repair['name']} here makes a finite adjoint of `{kernel}` infinite or NaN"
                    f"{slot_words(cause)}: kept away from where its derivative is infinite, the adjoint is "
                    "finite",
                    place,
                    related,
                    "add a small positive number under it, use `wp.length`, or branch around zero with `if`",
                    removal,
                )
            if repair["what"] == "components":
                return Named(
                    "WL302",
                    f"`{kernel}` assigns {_parts_of(repair)} that already carry a derivative: without such "
                    "assignments its adjoint is right",
                    place,
                    related,
                    "build new vectors instead of assigning components, or set "
                    "`wp.config.enable_vector_component_overwrites = True`",
                    removal,
                )
            if repair["what"] == "custom-adjoint":
                file, line = repair["place"]
                return Named(
                    "WL402",
                    f"the custom adjoint of `{repair['name']}` is not the derivative of the function: "
                    f"without it, the adjoint of `{kernel}` is right",
                    Location(paths.display(str(file)), int(line)),
                    related,
                    "differentiate the function again, and accumulate into every argument",
                    removal,
                )
            if repair["what"] == "unrolled":
                return Named(
                    "WL303",
                    f"the adjoint of `{kernel}` needs values that its loops compute: with the loops "
                    "unrolled, it is right",
                    place,
                    related,
                    "move the loop into a @wp.func that returns plain sums, or give it a constant bound of "
                    "at most 16",
                    removal,
                )
        for name, file, line in cause["natives"]:
            return Named(
                "WL207",
                f"`{name}` is native code without an adjoint, and `{kernel}` sends the derivative through it",
                Location(paths.display(str(file)), int(line)),
                related,
                "give it an adj_snippet",
                removal,
            )
        wrong = "is not the derivative of what it computes"
        if not cause["finite"]:
            wrong = "makes a finite adjoint infinite or NaN"
        wrong += slot_words(cause)
        return Named(
            "WL901",
            f"the adjoint of `{kernel}` {wrong}",
            definition,
            related,
            "look in the kernel for custom adjoints, loops that carry values, components assigned twice, and "
            "roots or divisions at zero",
            removal,
        )


def in_place(cause: dict[str, Any], seen: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The overwrite that makes an adjoint wrong: the kernel wrote what its other threads read.

    Putting the values back around the adjoint does not take all of that away: what a thread read may
    be what another had written already.
    """
    if not cause["finite"] or cause["repairs"] or cause["natives"]:
        return None
    for other in seen:
        own = other["kernel"] == cause["kernel"] and any(r["own"] for r in other.get("readers", ()))
        if other["kind_of_cause"] == Counterfactual.RESTORE_VALUES.value and own:
            return other
    return None


def is_tie(cause: dict[str, Any]) -> bool:
    """Whether the adjoint is right as soon as what it selects among is not equal."""
    return any(repair["what"] == "tie" for repair in cause.get("repairs", ()))


def slot_words(cause: dict[str, Any]) -> str:
    """Which element of which argument an adjoint gets wrong, as the rest of a sentence."""
    slot = cause.get("slot")
    if not slot or not slot["argument"]:
        return ""
    element = ", ".join(str(index) for index in slot["element"])
    found = f"the adjoint of `{slot['argument']}[{element}]` is {slot['adjoint']:.4g}"
    if slot["derivative"] is None:
        return f" ({found})"
    return f" ({found}, the derivative {slot['derivative']:.4g})"


def _parts_of(repair: dict[str, Any]) -> str:
    return f"components of `{repair['name']}`" if repair.get("lines") else "components"


def _speaks_of(finding: Finding, lines: list[Any], paths: Paths) -> bool:
    """Whether a finding is about one of these lines, or about what comes of them."""
    places = [finding.location, *(related.location for related in finding.related[:1])]
    return any(p.covers(paths.display(str(file)), int(line)) for p in places for file, line in lines)
