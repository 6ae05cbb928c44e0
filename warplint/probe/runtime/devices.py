"""CUDA programs on a machine without a GPU: requests for ``cuda`` run on the CPU."""

from __future__ import annotations

from typing import Any

from warp._src import context


class DeviceMap:
    """Maps ``cuda*`` to ``cpu`` where no CUDA device exists; ``used`` tells whether it was asked."""

    def __init__(self) -> None:
        self.used = False

    def install(self, requested: str) -> None:
        runtime = context.runtime
        if requested != "cpu" and runtime.cuda_devices:
            return
        cls = type(runtime)
        original = cls.get_device

        def get_device(runtime_self: Any, ident: Any = None) -> Any:
            if isinstance(ident, str) and ident.split(":")[0] in ("cuda", "gpu"):
                self.used = True
                return original(runtime_self, "cpu")
            return original(runtime_self, ident)

        cls.get_device = get_device
        runtime.set_default_device("cpu")
