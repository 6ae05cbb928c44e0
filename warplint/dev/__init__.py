"""Tools for those who work on warplint itself: ``python -m warplint.dev``."""
