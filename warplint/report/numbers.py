"""How numbers are written, the same in every report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from warplint.model import Evidence, Fix, Result, from_plain, to_plain


def significant(value: float, digits: int = 6) -> float | str | None:
    """Round to ``digits`` significant digits, so that the same input gives the same bytes.

    JSON has neither NaN nor infinity; those become the strings ``nan``, ``inf`` and
    ``-inf``, since the difference between them is worth keeping.
    """
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    rounded = float(f"{value:.{digits}g}")
    return 0.0 if rounded == 0 else rounded


def round_floats(value: Any) -> Any:
    """Apply `significant` to every float inside plain data."""
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, dict):
        return {key: round_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [round_floats(item) for item in value]
    return value


def rounded(result: Result) -> Result:
    """The result with the numbers that every report has: those of a report that is read back, too."""
    if result.evidence is None and result.fix is None:
        return result
    return replace(
        result,
        evidence=result.evidence and from_plain(Evidence, round_floats(to_plain(result.evidence))),
        fix=result.fix and from_plain(Fix, round_floats(to_plain(result.fix))),
    )


def short(value: float) -> str:
    """A number for a table: four or five significant digits, exponent only where needed."""
    if math.isnan(value) or math.isinf(value):
        return str(significant(value))
    if value == 0:
        return "0"
    magnitude = abs(value)
    if 1e-4 <= magnitude < 1e6:
        decimals = max(0, 4 - math.floor(math.log10(magnitude)))
        text = f"{value:.{decimals}f}"
        return text
    return f"{value:.3e}"


def rough(value: float) -> str:
    """An uncertainty: two significant digits say all there is to say."""
    if math.isnan(value) or math.isinf(value):
        return str(significant(value))
    return f"{value:.2g}"


def percent(value: float) -> str:
    """A relative error as a person says it: ``11.7%``, ``0.03%``, ``340%``, ``<0.001%``."""
    if math.isnan(value) or math.isinf(value):
        return str(significant(value))
    if value == 0:
        return "0%"
    scaled = 100 * value
    if abs(scaled) < 0.001:
        return "<0.001%"
    if abs(scaled) >= 1e5:
        return f"{scaled:.1e}%"
    if abs(scaled) >= 100:
        return f"{scaled:.0f}%"
    decimals = 1 if abs(scaled) >= 1 else 2 if abs(scaled) >= 0.1 else 3
    return f"{scaled:.{decimals}f}%"
