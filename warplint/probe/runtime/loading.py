"""Compiling and loading of kernel modules: timed, and done before the forks that need them."""

from __future__ import annotations

import contextlib
import functools
import json
import time
from typing import Any

from warp._src import context


class Loading:
    """Kernel modules loaded (compiled) in this process; that time is none of the program's."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.modules: set[tuple[str, Any]] = set()
        """By name and block size: a launch loads the variant of its own."""
        self.diary = ""
        """File that tells another process how far compiling has come, if this one never reports."""

    def begin(self, variant: tuple[str, Any]) -> None:
        if variant not in self.modules:
            self.write(time.monotonic())

    def end(self, variant: tuple[str, Any], seconds: float) -> None:
        self.seconds += seconds
        if variant not in self.modules or seconds > 0.1:
            self.modules.add(variant)
            self.write(None)

    def write(self, since: float | None) -> None:
        if self.diary:
            with contextlib.suppress(OSError), open(self.diary, "w", encoding="utf-8") as file:
                json.dump([self.seconds, len(self.modules), since], file)


LOADING = Loading()


def time_compilation() -> None:
    original = context.Module.load

    @functools.wraps(original)
    def load(self: Any, device: Any, block_dim: Any = None, *args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        variant = (self.name, block_dim)
        LOADING.begin(variant)
        try:
            return original(self, device, block_dim, *args, **kwargs)
        finally:
            LOADING.end(variant, time.monotonic() - began)

    context.Module.load = load


def load_modules(variants: set[tuple[str, Any]]) -> None:
    """Loads kernel modules that the program is known to use, so that forks need not each."""
    modules = {module.name: module for module in context.user_modules.values()}
    for name, block_dim in variants:
        if name in modules:
            try:
                modules[name].load(context.runtime.get_device("cpu"), block_dim)
            except Exception:
                continue  # the program itself will say what is wrong with it
