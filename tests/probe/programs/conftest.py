"""Programs of these tests run in subprocesses that share the user's kernel cache."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
