"""Hash grids and meshes: kernels know them by a number, and no tape sees them built."""

from __future__ import annotations

import functools
from typing import Any

import warp

from . import arrays


def hook(stream: Any) -> None:
    """Makes it an event when one is built."""

    def wrap(cls: Any, name: str) -> None:
        original = getattr(cls, name)

        @functools.wraps(original)
        def build(self: Any, *args: Any, **kwargs: Any) -> Any:
            if stream.depth or stream.capture is not None:
                return original(self, *args, **kwargs)
            event = stream.event("build")
            event.details["structure"] = self
            return stream.run(event, lambda: original(self, *args, **kwargs))

        setattr(cls, name, build)

    build = warp.HashGrid.build

    @functools.wraps(build)
    def build_grid(self: Any, points: Any, *args: Any, **kwargs: Any) -> Any:
        result = build(self, points, *args, **kwargs)
        radius = args[0] if args else kwargs.get("radius")
        self._warplint_built = (arrays.content(points) if arrays.is_array(points) else b"", radius)
        return result

    warp.HashGrid.build = build_grid
    wrap(warp.HashGrid, "build")
    wrap(warp.Mesh, "__init__")
    wrap(warp.Mesh, "refit")
