"""One module a rule: questions to the graph of a tape scope, answered with findings.

A check sees facts; it never walks syntax and never prints. Importing this package registers the
checks: a new rule is a new module here and a page in ``rules/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from warplint.checks.base import Check, Claims, loop_checks, registered
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.loops import Loops

__all__ = ["Check", "all_checks", "run_checks", "run_loop_checks"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def all_checks() -> tuple[Check, ...]:
    """Every check, the more specific rule before the more general one."""
    return registered()


def run_checks(graphs: Iterable[ScopeGraph], checks: Sequence[Check] | None = None) -> list[Finding]:
    """The findings of all checks on all scopes; one fault is reported once."""
    findings: list[Finding] = []
    claims = Claims()
    for graph in graphs:
        claims.next_scope()
        for check in checks if checks is not None else all_checks():
            findings.extend(check.run(graph, claims))
    return findings


def run_loop_checks(loops: Loops) -> list[Finding]:
    """The findings about what happens between the tape scopes of one entry."""
    claims = Claims()
    return [finding for check in loop_checks() for finding in check.run(loops, claims)]
