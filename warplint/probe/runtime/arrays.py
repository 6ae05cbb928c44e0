"""Arrays as memory: births, views, struct fields, and which array a gradient belongs to."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from warp._src import context
from warp._src import types as wptypes


class Birth:
    """Where and when an array was made; serial numbers replace reusable ids and pointers."""

    __slots__ = ("__weakref__", "dtype", "ordinal", "requires_grad", "shape", "stack")

    def __init__(self, stack: tuple, array: Any) -> None:
        self.ordinal = 0
        self.stack = stack
        self.shape = tuple(array.shape)
        self.dtype = getattr(array.dtype, "__name__", str(array.dtype))
        self.requires_grad = bool(array.requires_grad)

    @property
    def family(self) -> tuple:
        """Arrays born by the same call path with the same type are one variable of the program."""
        return (self.stack, self.shape, self.dtype)

    @property
    def serial(self) -> tuple:
        """The array's identity in every run of the program: the n-th of its family."""
        return (self.family, self.ordinal)


class Births:
    """Every array of the process by birth. Arrays born before the hooks have none."""

    def __init__(self) -> None:
        self.counts: dict[tuple, int] = {}
        self.live: weakref.WeakValueDictionary[tuple, Any] = weakref.WeakValueDictionary()

    def add(self, array: Any, stack: tuple) -> Birth:
        birth = Birth(stack, array)
        birth.ordinal = self.counts.get(birth.family, 0)
        self.counts[birth.family] = birth.ordinal + 1
        array._warplint_birth = birth
        self.live[birth.serial] = array
        return birth


def is_array(value: Any) -> bool:
    return isinstance(value, wptypes.array) and value.device is not None


def root(array: Any) -> Any:
    """The array whose memory a view shares (views keep their base in ``_ref``)."""
    base = getattr(array, "_ref", None)
    if base is None:
        return array
    for _ in range(64):
        if not isinstance(base, wptypes.array):
            break
        array, base = base, getattr(base, "_ref", None)
    return array


def indexed(array: Any) -> tuple[Any, Any]:
    """The array whose elements an indexed array picks, and which: an index for numpy."""
    if not isinstance(array, wptypes.indexedarray):
        return array, ...
    picked = zip(array.data.shape, array.indices)
    return array.data, np.ix_(*(np.arange(n) if some is None else memory(some) for n, some in picked))


def birth(array: Any) -> Birth | None:
    return getattr(array, "_warplint_birth", None)


def adopt_gradient(owner: Any, gradient: Any) -> None:
    """Remember that ``gradient`` holds the adjoint of ``owner``."""
    if gradient is not None:
        gradient._warplint_owner = weakref.ref(owner)


def gradient_owner(array: Any) -> Any:
    """The array whose gradient shares this array's memory, or None."""
    reference = getattr(root(array), "_warplint_owner", None)
    owner = reference() if reference is not None else None
    return root(owner) if owner is not None else None


def is_gradient(array: Any) -> bool:
    """Whether an array was made to hold an adjoint; its owner may be gone."""
    return getattr(root(array), "_warplint_owner", None) is not None


def is_part_of_gradient(array: Any) -> bool:
    """Whether an array is a view of another's gradient, as slices are given one: nothing is set by that."""
    return root(array) is not array and is_gradient(array)


def share(array: Any) -> None:
    """Another library holds this array's memory: what it does there is not seen."""
    root(array)._warplint_shared = True


def is_shared(array: Any) -> bool:
    return getattr(root(array), "_warplint_shared", False)


def count_reset(gradient: Any, event: Any = None) -> None:
    """Something other than a backward pass set this array's content."""
    base = root(gradient)
    base._warplint_resets = resets(base) + 1
    base._warplint_reset_by = (event.kind, event.stack) if event is not None else None


def reset_by(gradient: Any) -> tuple[str, tuple] | None:
    """The last operation of that kind: what it was and where."""
    return getattr(root(gradient), "_warplint_reset_by", None)


def resets(gradient: Any) -> int:
    return getattr(root(gradient), "_warplint_resets", 0)


def note_adjoints(gradients: Iterable[Any]) -> None:
    """After a backward pass: what the gradients hold now was computed, not given as a seed."""
    for gradient in gradients:
        if is_array(gradient) and gradient.ptr:
            gradient._warplint_computed = (resets(gradient), hash(content(gradient)))


def given_by_user(gradient: Any) -> bool:
    """Whether a gradient's content is not what the last backward pass left there."""
    return getattr(gradient, "_warplint_computed", None) != (resets(gradient), hash(content(gradient)))


def note_seed(gradient: Any, given: Any, data: bytes) -> bool:
    """After a backward pass: what a seed array held before it. Whether the pass changed it."""
    base = root(gradient)
    if is_shared(base):
        return False
    base._warplint_seed = (given, content(base))
    return content(base) != data


def forget_seed(array: Any) -> None:
    """User code was handed a seed array: what it holds from now on is meant."""
    if is_array(array):
        base = root(array)
        if getattr(base, "_warplint_seed", None) is not None:
            base._warplint_seed = None


def used_up(gradient: Any) -> Any:
    """What a seed array was given as, if a pass (or zeroing its tape) is all that happened to it since."""
    given, left = getattr(root(gradient), "_warplint_seed", None) or (None, b"")
    if given is None:
        return None
    now = values(root(gradient))
    if np.array_equal(now, given) or (content(root(gradient)) != left and np.any(now)):
        return None
    return given


def mark_recorded(array: Any) -> None:
    """A recorded operation was handed this scalar: its value is what the tape made of it."""
    if is_array(array) and array.size == 1:
        base = root(array)
        base._warplint_recorded, base._warplint_kept = True, None


def keep_recorded(array: Any) -> None:
    """Something off the tape is about to write this scalar: remember what the tape made of it."""
    if is_array(array) and array.size == 1 and array.ptr:
        base = root(array)
        if getattr(base, "_warplint_recorded", False):
            base._warplint_recorded, base._warplint_kept = False, values(base)


def recorded_values(array: Any) -> Any:
    """A loss as its tape left it, whatever was written to it since; other arrays as they are."""
    kept = getattr(root(array), "_warplint_kept", None)
    return values(array) if kept is None else kept


def walk(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays among launch arguments, struct fields included, as (path, array)."""
    for index, value in enumerate(values or ()):
        yield from _walk_one(value, f"{path}{index}")


def _walk_one(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if is_array(value):
        if value.ptr:
            yield path, value
    elif wptypes.is_struct(value):
        for field in value._cls.vars:
            yield from _walk_one(getattr(value, field, None), f"{path}.{field}")
    elif isinstance(value, wptypes.indexedarray):
        yield from _walk_one(value.data, f"{path}.data")


def arguments(kernel: Any, inputs: Any, outputs: Any) -> list[tuple[str, Any]]:
    """Arrays a launch was given, named by the kernel's parameters (``state.q`` for a field)."""
    adjoint, labels = getattr(kernel, "_warplint_labels", (None, ()))
    if adjoint is not kernel.adj:
        labels = tuple(getattr(a, "label", str(i)) for i, a in enumerate(kernel.adj.args))
        kernel._warplint_labels = (kernel.adj, labels)
    found: list[tuple[str, Any]] = []
    for index, value in enumerate((*(inputs or ()), *(outputs or ()))):
        if type(value) not in _PLAIN:
            found += _walk_one(value, labels[index] if index < len(labels) else str(index))
    return found


_PLAIN = (float, int, bool)
"""What launches are given beside arrays, mostly."""


def memory(array: Any) -> Any:
    """The array's bytes as a numpy view (structured dtypes included); writes go through."""
    return np.asarray(_Interface(array))


class _Interface:
    """Hands numpy the array interface without passing the hooked methods."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = raw_interface(array)


def raw_interface(array: Any) -> dict:
    """Warp's own array-interface property; ``hooks`` saves it here before it wraps it."""
    return array.__array_interface__


def values(array: Any) -> Any:
    """A float64 copy of a floating-point array, flattened over element components."""
    return memory(array).astype(np.float64)


def content(array: Any) -> bytes:
    seen = window(array)
    return memory(array).tobytes() if seen is None else bytes(seen.raw)


def window(array: Any) -> Any:
    """The memory of an array whose elements lie together, to be read as ``raw``; else None.

    Made once an array: it is looked through before and after every launch.
    """
    known = array.__dict__.get("_warplint_window")
    if known is None or known[0] != array.ptr or known[1] != array.shape:
        seen = None
        if array.is_contiguous and array.ptr:
            seen = (ctypes.c_char * (array.size * element_size(array))).from_address(array.ptr)
        known = array._warplint_window = (array.ptr, array.shape, seen)
    return known[2]


def put(array: Any, data: bytes) -> None:
    """Overwrites the array's content with bytes taken from :func:`content`."""
    view = memory(array)
    if view.nbytes == len(data):
        view[...] = np.frombuffer(data, dtype=view.dtype).reshape(view.shape)


def recording() -> bool:
    """Whether a tape is recording now."""
    return context.runtime is not None and context.runtime.tape is not None


_FLOATS = (wptypes.float32, wptypes.float64, wptypes.float16)


def is_float(array: Any) -> bool:
    """Whether elements are floating point (vectors and matrices included)."""
    dtype = array.dtype
    try:
        return _KINDS[dtype]
    except KeyError:
        known = _KINDS[dtype] = getattr(dtype, "_wp_scalar_type_", dtype) in _FLOATS
        return known


_KINDS: dict[Any, bool] = {}


def interval(array: Any) -> tuple[int, int]:
    """The bytes [start, end) an array's elements may lie in."""
    start = end = int(array.ptr)
    for size, stride in zip(array.shape, array.strides):
        if size == 0:
            return start, start
        reach = (size - 1) * stride
        if reach >= 0:
            end += reach
        else:
            start += reach
    return start, end + wptypes.type_size_in_bytes(array.dtype)


def view_key(array: Any) -> tuple:
    return (int(array.ptr), tuple(array.shape), tuple(array.strides), id(array.dtype))


def element_size(array: Any) -> int:
    return int(wptypes.type_size_in_bytes(array.dtype))
