"""WL101 to WL108: a value (or an adjoint) that the backward pass needs was overwritten."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Finding, Related
from warplint.probe.causes.base import Named, Naming, by, location
from warplint.probe.facts import Paths


class Overwrites(Naming):
    kind = Counterfactual.RESTORE_VALUES

    def matches(self, finding: Finding, cause: dict[str, Any], paths: Paths) -> bool:
        if finding.rule == "WL403":
            # With the counter put back, a counter claimed from again counts alike on the CPU.
            return all(r["own"] for r in cause["readers"]) and self.placed(finding, cause, paths)
        return super().matches(finding, cause, paths)

    def happened(self, finding: Finding, cause: dict[str, Any]) -> bool:
        in_kernel = finding.request is not None and finding.request.kernel is not None
        return bool(in_kernel or cause["aliased"] or any(not r["own"] for r in cause["readers"]))

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        # What only the overwriting launch itself was handed is its output, not what was lost.
        names = [b for b in cause.get("needed") or cause["buffers"] if b] or ["an array"]
        buffer = names[0]
        all_of_them = " and ".join(f"`{n}`" for n in names[:3])
        here = location(cause["stack"], paths)
        readers = [r for r in cause["readers"] if r["argument"]] or cause["readers"]
        foreign = [r for r in readers if not r["own"]]
        reader = (foreign or readers or [None])[0]
        related = []
        if reader is not None and reader["stack"]:
            place = location(reader["stack"], paths)
            if place != here:
                related.append(Related(place, f"read here, by {by(reader['kernel'])}"))
        kernel = cause["kernel"]
        action = {
            "launch": f"by {by(kernel)}" if kernel else "by a launch",
            "reduce": f"by wp.utils.{kernel}()",
            "copy": "by a copy",
            "assign": "by assign()",
            "zero": "by zero_()",
            "fill": "by fill_()",
            "unseen": "through a view of its memory",
        }[cause["kind"]]
        needed = f"the backward pass of {by(reader['kernel'])}" if reader else "the backward pass"
        rule, help_text = _rule_of(cause, foreign)
        verb = "is" if len(names) == 1 else "are"
        messages = {
            "WL105": f"{all_of_them} {verb} reset {action} while the tape is recording, after earlier "
            f"steps used it: {needed} then sees the value and the adjoint of the wrong step",
            "WL104": f"{all_of_them} {verb} both read and written {action}: the backward pass evaluates the "
            "kernel at the values it left behind",
            "WL106": f"{all_of_them} {verb} changed {action} between recording and backward(), but {needed} "
            "still needs the old value",
            "WL107": f"{all_of_them} {verb} overwritten {action} after the loss is complete but before "
            f"backward(), and {needed} still needs the old value",
            "WL108": f"{all_of_them} {verb} updated in place {action}, but the kernel's own backward pass "
            "needs the value before the write",
        }
        message = messages.get(
            rule, f"{all_of_them} {verb} overwritten {action}, but {needed} still needs the old value"
        )
        return Named(
            rule=rule,
            message=message,
            location=here,
            related=tuple(related),
            help=help_text.format(buffer=buffer),
            removal=f"overwrite of {all_of_them} {action}",
        )


def _rule_of(cause: dict[str, Any], foreign: list[dict[str, Any]]) -> tuple[str, str]:
    """The rule a confirmed overwrite breaks, in the order of precedence, and what to do about it."""
    kind, recorded = cause["kind"], cause["recorded"]
    elsewhere = bool(foreign) and not any(r.get("same_tape", True) for r in foreign)
    if kind == "unseen" or not cause["on_tape"] or elsewhere:
        return "WL106", "do not change `{buffer}` between recording it and calling backward()"
    own = [r for r in cause["readers"] if r["own"]]
    here = [list(f[:2]) for f in cause["stack"][:1]]
    if kind != "launch" and cause.get("copied"):
        return "WL102", "go on with the copied array itself instead of writing back into `{buffer}`"
    if kind != "launch" and not recorded:
        return "WL105", "allocate a fresh `{buffer}` for every step instead of clearing one"
    if not recorded and not cause.get("after_objective"):
        return "WL106", "record this launch, or let it write to an array that the tape does not use"
    if own and cause["aliased"]:
        return "WL104", "write the result of each step to an array of its own"
    if any([list(f[:2]) for f in r["stack"][:1]] == here for r in foreign):
        return "WL103", "keep one array per step (a list of states) instead of reusing `{buffer}`"
    if cause.get("after_objective"):
        return "WL107", "move this out of the tape and behind backward()"
    if own and not foreign:
        return "WL108", "write the result of the kernel to a second array instead of updating in place"
    return "WL101", "write to a fresh array, so that the value `{buffer}` had stays readable until backward()"
