"""warplint: the linter that proves the gradient bugs it reports in NVIDIA Warp programs."""

__version__ = "0.1.0"
