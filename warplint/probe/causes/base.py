"""What every kind of cause says outside the user's process, and how it is worded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warplint.model import Counterfactual, Finding, Location, ProbeRequest, Related
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


class Naming:
    """Names one kind of run-time cause; ``kind`` is the runtime's ``Kind.NAME``."""

    kind: Counterfactual

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        """The rule, the sentence and the places for a cause confirmed by the probe."""
        raise NotImplementedError

    def matches(self, finding: Finding, cause: dict[str, Any], paths: Paths) -> bool:
        """Whether a static finding predicted this very cause."""
        request = finding.request
        return request is not None and request.counterfactual is self.kind and _placed(request, cause, paths)

    def placed(self, finding: Finding, cause: dict[str, Any], paths: Paths) -> bool:
        """Whether a finding is about the place of this cause, whatever it asks to be taken away."""
        return finding.request is not None and _placed(finding.request, cause, paths)

    def choose(self, matching: list[Finding], cause: dict[str, Any], paths: Paths) -> list[Finding]:
        """Which of the findings that predicted a confirmed cause are confirmed with it."""
        return matching

    def happened(self, finding: Finding, cause: dict[str, Any]) -> bool:
        """Whether the hazard a finding predicted was really met in a run whose gradient is right."""
        return True

    def seen(self, cause: dict[str, Any], paths: Paths) -> tuple[Related, ...]:
        """What the run saw beside what a finding had predicted."""
        return ()

    def meant(self, cause: dict[str, Any], paths: Paths) -> bool:
        """Whether the code says that the cause is on purpose."""
        return False

    def note(self, cause: dict[str, Any], paths: Paths) -> str | None:
        """What is worth saying of a cause that is on purpose."""
        return None


def _placed(request: ProbeRequest, cause: dict[str, Any], paths: Paths) -> bool:
    if request.kernel and cause.get("kernel") != request.kernel:
        return False
    frames = paths.frames(cause["stack"])
    if request.sites:
        return any(site.covers(file, line) for site in request.sites for file, line in frames)
    return request.kernel is not None


def by(kernel: str | None) -> str:
    """The writer or reader in words: a kernel, a copy."""
    if kernel in ("copy", "assign"):
        return f"{kernel}()"
    return f"`{kernel}`" if kernel else "a launch"


def listed(names: list[str]) -> str:
    """`a`, `b` and `c` (at most three)."""
    quoted = [f"`{name}`" for name in names[:3]]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def location(stack: list[Any], paths: Paths) -> Location:
    """The innermost frame of the user's code."""
    if not stack:
        return Location("?", 1)
    file, line = stack[0][:2]
    return Location(paths.display(str(file)), int(line))
