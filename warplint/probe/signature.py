"""What the numbers of a wrong gradient point at, before any cause is known, in words.

The patterns and the order of the suspects are the runtime's (``runtime/signatures.py``): it tries
causes in the order in which reports list them.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.probe.runtime.signatures import SUSPECTS, rules, signature

__all__ = ["HINTS", "SUSPECTS", "signature", "suspects"]


def suspects(name: str, found: Iterable[str]) -> tuple[str, ...]:
    """Rules in the order in which they are tried: those of static findings first, then the table's."""
    table = rules(name)
    pointed = sorted(set(found), key=lambda rule: (_position(table, rule), rule))
    return tuple(dict.fromkeys([*pointed, *table]))


def _position(table: tuple[str, ...], rule: str) -> int:
    return table.index(rule) if rule in table else len(table)


HINTS = {
    "zero": "the whole gradient is zero: look for an array without requires_grad, a launch outside the tape "
    "or a kernel compiled without its backward pass",
    "nan-inf": "look for a square root, a division or a logarithm at zero in the kernels on the tape",
    "grows-with-iterations": "the error grows with the iteration: zero the gradients (tape.zero()) and use a "
    "fresh or reset tape in every iteration",
    "exact-factor": "autodiff is off by one constant factor: look at the seed of the backward pass and for "
    "launches recorded or gradients counted more than once",
    "subtly-wrong": "the size is plausible, the value is wrong: look in the kernels on the tape for values "
    "carried through runtime loops, components assigned twice, in-place updates and custom adjoints",
    "stale": "the gradient array was read as a live view and changed before it was used: copy it "
    "(grad.numpy().copy()) before zeroing",
    "per-window-only": "each pass is right up to where its own tape began: hand the adjoint of what the "
    "tapes carry on, or record them as one",
    "sparse": "only some entries are wrong: look for values that leave the tape (numpy, float()), "
    "counters and branches",
}
"""What to look for when no known cause explains a difference, by signature."""
