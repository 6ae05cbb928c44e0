"""Arguments for a kernel that no program launches: made from the types that it declares.

Nobody knows what a kernel is meant for, so several ways of filling its arguments are tried. Integers
are the dangerous ones: they are indices, counts and sizes. Arrays are larger than what the threads and
the counts reach, and integer arrays hold each index once, so that no two threads store into one element.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np
import warp
from warp._src import codegen
from warp._src import types as wptypes

from .repairs import called_functions

LENGTHS = {1: (64,), 2: (16, 16), 3: (8, 8, 8), 4: (5, 5, 5, 5)}
DIMENSIONS = {1: (4,), 2: (3, 3), 3: (2, 2, 2), 4: (2, 2, 2, 2)}
LAYOUTS = ((4, 64), (3, 5), (2, 3))
"""What an integer argument is, and the number of different indices in an integer array."""
SPREADS = ("around one", "both signs", "small", "large")
HANDLES = ("mesh_", "hash_grid_", "bvh_", "volume_")
SURFACE = [(-2.0, -2.0, -0.4), (2.0, -2.0, 0.3), (2.0, 2.0, -0.2), (-2.0, 2.0, 0.5)]
TRIANGLES = [0, 1, 2, 0, 2, 3]
LARGE = 150.0
"""Beyond where the exponential of a float32 overflows."""


class Unmakeable(Exception):  # noqa: N818  (reads as what happened)
    """An argument of a type that cannot be made up: a mesh, a hash grid, a tile."""


class Inputs:
    """One set of arguments for one kernel."""

    def __init__(self, kernel: Any, layout: tuple[int, int], spread: str, seed: int) -> None:
        self.count, self.indices = layout
        self.spread = spread
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.arrays: list[Any] = []
        self.kept: list[Any] = []
        """Meshes and grids, whose ids the kernel is given."""
        self.uses = handle_uses(kernel)
        self.values = [self.argument(a.type, a.label) for a in kernel.adj.args]
        dimension = DIMENSIONS[thread_dimensions(kernel)]
        self.call = {"kernel": kernel, "dim": dimension, "inputs": self.values, "device": "cpu"}
        if has_tiles(kernel):
            # On the CPU a block has one thread, which works on the whole tile.
            self.call.update(dim=(*dimension, 1), block_dim=1)

    def argument(self, kind: Any, name: str) -> Any:
        if isinstance(kind, codegen.Struct):
            made = kind()
            for field, variable in kind.vars.items():
                setattr(made, field, self.argument(variable.type, f"{name}.{field}"))
            return made
        if type(kind) is wptypes.array or type(kind).__name__ == "_ArrayAnnotation":
            return self.array(kind, name)
        if kind in (float, int, bool):
            return self.scalar({float: warp.float32, int: warp.int32, bool: warp.bool}[kind])
        if kind is warp.uint64:
            return self.handle(self.uses.get(name, name.rpartition(".")[2]))
        if kind in wptypes.scalar_types or kind is warp.bool:
            return self.scalar(kind)
        if wptypes.type_is_vector(kind) or wptypes.type_is_matrix(kind) or _is_rotation(kind):
            return kind(*(v.item() for v in self.element(kind).reshape(-1)))
        raise Unmakeable(getattr(kind, "__name__", str(kind)))

    def scalar(self, kind: Any) -> Any:
        if kind is warp.int64:
            raise Unmakeable("a handle")
        if kind is warp.bool:
            return True
        if kind in wptypes.int_types:
            return self.count
        return float(self.random.uniform(0.3, 1.2))

    def handle(self, use: str) -> Any:
        """The id of something to ask questions of, by what is asked or by its name."""
        made: Any = None
        if "mesh" in use:
            made = warp.Mesh(
                points=warp.array(SURFACE, dtype=warp.vec3, device="cpu"),
                indices=warp.array(TRIANGLES, dtype=int, device="cpu"),
            )
        elif "grid" in use:
            made = warp.HashGrid(8, 8, 8, device="cpu")
            points = self.numbers((64, 3)).astype(np.float32)
            made.build(warp.array(points, dtype=warp.vec3, device="cpu"), 0.5)
        elif "bvh" in use:
            lower = self.numbers((16, 3)).astype(np.float32)
            made = warp.Bvh(
                warp.array(lower, dtype=warp.vec3, device="cpu"),
                warp.array(lower + np.float32(0.4), dtype=warp.vec3, device="cpu"),
            )
        elif "volume" in use or "sdf" in use:
            field = np.add.outer(np.add.outer(np.arange(8.0), np.arange(8.0)), np.arange(8.0))
            try:
                made = warp.Volume.load_from_numpy(
                    np.sin(0.3 * field).astype(np.float32), (-2.0,) * 3, 0.5, device="cpu"
                )
            except Exception:
                raise Unmakeable("a volume") from None
        if made is None:
            raise Unmakeable("a handle of an unknown kind")
        self.kept.append(made)
        return made.id

    def array(self, kind: Any, name: str) -> Any:
        if kind.ndim not in LENGTHS:
            raise Unmakeable(f"an array of {kind.ndim} dimensions")
        shape, dtype = LENGTHS[kind.ndim], kind.dtype
        if isinstance(dtype, codegen.Struct):
            if kind.ndim > 1:
                raise Unmakeable("an array of structs")
            made = warp.array(
                [self.argument(dtype, name) for _ in range(shape[0])], dtype=dtype, device="cpu"
            )
            self.arrays.append(made)
            return made
        scalar = getattr(dtype, "_wp_scalar_type_", dtype)
        if scalar in (warp.uint64, warp.int64) or dtype is Any:
            raise Unmakeable("handles")
        floats = scalar in wptypes.float_types or scalar is float
        if floats:
            count = math.prod(shape)
            values = np.stack([self.element(dtype) for _ in range(count)])
            values = values.reshape(*shape, *values.shape[1:])
        else:
            inner = tuple(getattr(dtype, "_shape_", ()))
            values = self.integers((*shape, *inner), boolean=scalar in (bool, warp.bool))
        made = warp.array(values, dtype=dtype, device="cpu", requires_grad=floats)
        if tuple(made.shape) != shape:
            raise Unmakeable(f"an array of {getattr(dtype, '__name__', dtype)}")
        self.arrays.append(made)
        return made

    def integers(self, shape: tuple[int, ...], *, boolean: bool) -> Any:
        """Indices, each once along every dimension as far as there are enough of them."""
        if boolean:
            return self.random.integers(0, 2, shape).astype(bool)
        order = self.random.permutation(self.indices)
        places = np.indices(shape)
        steps = [1, *(max(1, self.indices // n) for n in shape[1:])]
        return order[sum(s * p for s, p in zip(steps, places)) % self.indices].astype(np.int64)

    def element(self, dtype: Any) -> Any:
        """One number, vector, matrix or rotation."""
        shape = tuple(getattr(dtype, "_shape_", ()))
        if wptypes.type_is_matrix(dtype) and self.spread in ("around one", "small"):
            return 1.5 * np.eye(*shape) + self.numbers(shape) * 0.3
        if wptypes.type_is_transformation(dtype):
            return np.concatenate([self.numbers((3,)), self.rotation()])
        if wptypes.type_is_quaternion(dtype):
            return self.rotation()
        return self.numbers(shape)

    def rotation(self) -> Any:
        values = self.random.standard_normal(4)
        return values / np.linalg.norm(values)

    def numbers(self, shape: tuple[int, ...]) -> Any:
        if self.spread == "around one":
            return self.random.uniform(0.4, 1.6, shape)
        if self.spread == "large":
            return LARGE * self.random.uniform(-1.0, 1.0, shape)
        return (0.1 if self.spread == "small" else 1.0) * self.random.standard_normal(shape)


def thread_dimensions(kernel: Any) -> int:
    """How many indices a kernel takes from ``wp.tid()``."""
    found = 1
    for node in ast.walk(kernel.adj.tree):
        if isinstance(node, ast.Assign) and _is_tid(node.value):
            target = node.targets[0]
            found = max(found, len(target.elts) if isinstance(target, ast.Tuple) else 1)
    return found


def has_tiles(kernel: Any) -> bool:
    """Whether the threads of a block work on tiles together."""
    return any(_called(n).startswith("tile") for n in ast.walk(kernel.adj.tree) if isinstance(n, ast.Call))


def handle_uses(kernel: Any) -> dict[str, str]:
    """What is asked of each handle that a kernel (or a function it calls) is given: ``mesh_query_ray``."""
    bodies = [kernel.adj.tree, *(f.adj.tree for f in called_functions(kernel.func))]
    found: dict[str, str] = {}
    for node in (n for tree in bodies for n in ast.walk(tree)):
        if isinstance(node, ast.Call) and node.args and _called(node).startswith(HANDLES):
            found.setdefault(ast.unparse(node.args[0]), _called(node))
    return found


def concrete(kernel: Any) -> Any:
    """A generic kernel with float numbers and vectors of three for whatever it leaves open."""
    if not kernel.is_generic:
        return kernel
    return kernel.add_overload([_filled(kind) for kind in kernel.adj.arg_types.values()])


def _filled(kind: Any) -> Any:
    if type(kind) is wptypes.array or type(kind).__name__ == "_ArrayAnnotation":
        return warp.array(dtype=_filled(kind.dtype), ndim=kind.ndim) if _open(kind.dtype) else kind
    if not _open(kind):
        return kind
    shape = tuple(n if isinstance(n, int) and n > 0 else 3 for n in getattr(kind, "_shape_", ()))
    if len(shape) == 2:
        return wptypes.matrix(shape, warp.float32)
    if len(shape) == 1:
        return warp.quat if wptypes.type_is_quaternion(kind) else wptypes.vector(shape[0], warp.float32)
    return warp.float32


def _open(kind: Any) -> bool:
    return bool(wptypes.type_is_generic(kind))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_tid(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name == "tid"


def _is_rotation(kind: Any) -> bool:
    return bool(wptypes.type_is_quaternion(kind) or wptypes.type_is_transformation(kind))
