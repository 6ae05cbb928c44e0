"""Effect summaries of Warp kernels and functions, from their bodies."""

from warplint.static.kernels.summary import (
    Access,
    AccessKind,
    Dimension,
    IndexClass,
    InPlaceMultiply,
    KernelSummary,
    Need,
    Parameter,
    Site,
    overlaps,
)

__all__ = [
    "Access",
    "AccessKind",
    "Dimension",
    "InPlaceMultiply",
    "IndexClass",
    "KernelSummary",
    "Need",
    "Parameter",
    "Site",
    "overlaps",
]
