"""Files, text and programs of the checked tree (nothing here imports libcst, networkx or warp)."""

from warplint.source.cache import Cache
from warplint.source.discovery import Discovery, SourceError, SourceFile, discover
from warplint.source.prepare import prepare
from warplint.source.programs import find_programs, program_for_entry
from warplint.source.suppressions import Suppression, Suppressions, suppressions

__all__ = [
    "Cache",
    "Discovery",
    "SourceError",
    "SourceFile",
    "Suppression",
    "Suppressions",
    "discover",
    "find_programs",
    "prepare",
    "program_for_entry",
    "suppressions",
]
