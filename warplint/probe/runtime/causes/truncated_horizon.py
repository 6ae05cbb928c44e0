"""Backward passes that end where their own tape began, while the state goes on."""

from __future__ import annotations

from typing import Any

from .base import CounterfactualRun, Kind


class TruncatedHorizon(Kind):
    """Compares with the objective whose windows do not know of each other.

    Passes cannot be joined at run time; but the finite difference with the state at every tape's
    start held constant is the one the separate passes compute.
    """

    NAME = "truncated-horizon"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        windows = run.measured.windows
        self.causes: list[dict[str, Any]] = []
        if windows is not None and windows.passes:
            stack = windows.passes[0]
            file, line = stack[0][:2] if stack else ("?", 0)
            self.causes.append(
                {
                    "key": (self.NAME, file, line),
                    "stack": stack,
                    "buffer": windows.names[0] if windows.names else None,
                    "buffers": windows.names,
                    "windows": windows.count,
                    "passes": len(windows.passes),
                }
            )

    def found(self) -> list[dict[str, Any]]:
        return self.causes

    def corrections(self) -> dict[str, float]:
        windows = self.run.measured.windows
        if windows is None or not any(self.removes(cause["key"]) for cause in self.causes):
            return {}
        fd = {name: check.fd for name, check in self.run.measured.checks}
        return {name: held - fd[name] for name, held in windows.held.items()}
