"""Fixtures of these tests; what they are made of is in ``isolation_support``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from isolation_support import layers, own_cache, project

__all__ = ["layers", "own_cache", "project"]
