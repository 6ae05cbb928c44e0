"""Reports: every format is rendered from one list of results, so that none can disagree."""

from __future__ import annotations

from importlib import import_module

from warplint.model import Report
from warplint.report.context import Context

__all__ = ["Context", "render"]


def render(format: str, report: Report, context: Context) -> str:
    """Render ``report`` as ``text``, ``json``, ``sarif`` or ``github``."""
    # Imported here: SARIF and the terminal each bring libraries that the others do without.
    module = import_module(f"warplint.report.{format}")
    return str(module.render(report, context))
