"""Loads this package under a name of its own when one of its files is executed by path.

Its folder must not be importable as ``runtime``: the user's program may have a module of that
name.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

NAME = "_warplint_runtime"


def load(module: str) -> ModuleType:
    """The sibling ``module``, as part of the package ``_warplint_runtime``."""
    here = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        NAME, os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    found = importlib.import_module(f"{NAME}.{module}")
    # Siblings must be found through the package alone from here on.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path.insert(0, "")  # replaced by the program's own directory
    sys.modules.pop("bootstrap", None)
    return found
