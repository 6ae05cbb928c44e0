"""Is a custom adjoint the derivative of its ``@wp.func``? Numerically, element by element.

A kernel of our own calls the function on many samples at once, a thread each. Its derivative is a
difference of the function in double precision where it can be built again in that; what the custom
adjoint makes of random incoming adjoints must be the same.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import warp
from warp._src import context
from warp._src import types as wptypes

from . import arrays
from .double_precision import compiled, in_double, wider
from .hooks import Stream
from .made_inputs import Unmakeable
from .repairs import called_functions
from .rewrites import source_tree

SAMPLES = 48
"""Of each way to choose the arguments."""
SPREADS = ("around one", "both signs", "small", "wide", "its constants", "met")
WRONG = 0.05
FEWEST, SHARE = 5, 0.2
"""Samples, and part of those that can be trusted, at which the adjoint must be off to be called wrong."""
GUARD = 20.0
"""An adjoint so much larger than any derivative, where that is zero, limits itself at a singular point."""
STEPS = {"double": 1.0e-4, "single": 1.0e-2}
SPACING = 8.0 * float(np.finfo(np.float32).eps)
"""How well a difference of numbers in single precision is known, relative to their size."""


def custom_functions(module: Any) -> list[Any]:
    """The functions of a Python module that have a custom adjoint."""
    found = {}
    for value in vars(module).values():
        for function in overloads(value):
            if function.custom_grad_func is not None:
                found[id(function)] = function
    return list(found.values())


def custom_adjoints(kernel: Any) -> Iterator[Any]:
    """The functions with a custom adjoint that a kernel calls, directly or not."""
    for called in called_functions(kernel.func):
        for function in overloads(called):
            if function.custom_grad_func is not None:
                yield function


def overloads(value: Any) -> Iterator[Any]:
    if isinstance(value, context.Function) and not value.is_builtin():
        given = getattr(value, "user_overloads", None) or {}
        yield from given.values() if given else (value,)


def test_function(stream: Stream, function: Any, met: Sequence[float] = ()) -> dict[str, Any] | None:
    """What the comparison showed; None if arguments cannot be made up or little can be compared."""
    try:
        samples = Samples(function, met)
    except Unmakeable:
        return None
    custom = function.custom_grad_func
    row: dict[str, Any] = {
        "function": function.key,
        "file": stream.sites.name(custom.adj.filename) or custom.adj.filename,
        "line": int(custom.adj.fun_lineno),
        "last": int(custom.adj.fun_lineno) + len(custom.adj.source_lines) - 1,
        "double": samples.double,
        "tested": 0,
        "wrong": 0,
        "surrogate": False,
        "spread": "",
        "at": "",
        "adjoint": 0.0,
        "derivative": 0.0,
    }
    stream.depth += 1
    try:
        compared = samples.compare()
    finally:
        stream.depth -= 1
    return _judged(row, samples, compared)


class Samples:
    """Many arguments of a function, and kernels that run it on all of them."""

    def __init__(self, function: Any, met: Sequence[float]) -> None:
        self.kinds = dict(function.input_types)
        self.results = [variable.type for variable in function.adj.return_var or ()]
        for kind in (*self.kinds.values(), *self.results):
            if not (_is_float(kind) or (kind in self.kinds.values() and _is_count(kind))):
                raise Unmakeable(str(kind))
        if not self.results or not any(map(_is_float, self.kinds.values())):
            raise Unmakeable("nothing to differentiate")
        self.random = np.random.Generator(np.random.PCG64(11))
        self.constants = _constants(function)
        self.met = np.asarray(met, dtype=np.float64)
        self.spreads = [
            s
            for s in SPREADS
            if (s != "its constants" or self.constants) and (s != "met" or len(self.met) > 0)
        ]
        self.size = SAMPLES * len(self.spreads)
        self.values = {name: self.column(kind) for name, kind in self.kinds.items()}
        self.kernel = self.build("single", function, self.kinds.values(), self.results)
        self.forward, self.double = self.kernel, False
        self.same = np.ones(self.size, dtype=bool)
        """Samples at which single precision is good enough for the function itself."""
        if any(wider(kind) is not kind for kind in self.kinds.values()):
            self.try_double(function)

    def column(self, kind: Any) -> Any:
        shape = (SAMPLES, *getattr(kind, "_shape_", ()))
        if _is_count(kind):
            return self.random.integers(0, 4, (self.size, *shape[1:]))
        found = []
        for spread in self.spreads:
            if spread == "around one":
                block = self.random.uniform(0.4, 1.6, shape)
            elif spread == "its constants":
                block = self.random.choice(self.constants, shape) * self.random.uniform(0.5, 1.5, shape)
            elif spread == "met":
                block = self.random.choice(self.met, shape)
            else:
                block = {"both signs": 1.0, "small": 0.1, "wide": 6.0}[spread] * self.random.uniform(
                    -1.0, 1.0, shape
                )
            if wptypes.type_is_quaternion(kind):
                block /= np.linalg.norm(block, axis=1, keepdims=True)
            found.append(block)
        return np.concatenate(found)

    def build(self, name: str, function: Any, kinds: Any, results: Any) -> Any:
        module = context.Module(f"warplint_function_{name}_{function.key}", None)
        return _wrapper(module, function, list(kinds), list(results))

    def try_double(self, function: Any) -> None:
        module = context.Module(f"warplint_function_double_{function.key}", None)
        try:
            forward = in_double(function, module)
            kinds, results = map(wider, self.kinds.values()), map(wider, self.results)
            kernel = _wrapper(module, forward, list(kinds), list(results))
            first = self.run(kernel, self.values)
        except Exception:
            return
        with np.errstate(all="ignore"):
            same = [
                np.isclose(a, b, rtol=1e-2, atol=1e-3 * np.nanmedian(np.abs(b)) + 1e-12)
                for a, b in zip(self.run(self.kernel, self.values), first)
            ]
        if np.mean([np.mean(s) for s in same]) > 0.8:
            self.forward, self.double = kernel, True
            self.same = np.all([np.all(s, axis=1) for s in same], axis=0)

    # -- runs ----------------------------------------------------------------------------

    def arguments(self, kernel: Any, values: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        types = [a.type for a in kernel.adj.args]
        given = [
            warp.array(v, dtype=t.dtype, device="cpu", requires_grad=_is_float(t.dtype))
            for v, t in zip(values.values(), types)
        ]
        results = [
            warp.zeros(self.size, dtype=t.dtype, device="cpu", requires_grad=True)
            for t in types[len(given) :]
        ]
        return given, results

    def run(self, kernel: Any, values: dict[str, Any]) -> list[Any]:
        given, results = self.arguments(kernel, values)
        warp.launch(kernel, self.size, [*given, *results], device="cpu", record_tape=False)
        return [arrays.memory(r).astype(np.float64).reshape(self.size, -1) for r in results]

    def pulled(self, weights: list[Any]) -> dict[str, Any]:
        """What the custom adjoint makes of incoming adjoints, by argument."""
        given, results = self.arguments(self.kernel, self.values)
        tape = warp.Tape()
        with tape:
            warp.launch(self.kernel, self.size, [*given, *results], device="cpu")
        for result, weight in zip(results, weights):
            memory = arrays.memory(result.grad)
            memory[...] = weight.reshape(memory.shape)
        tape.backward()
        return {
            name: arrays.memory(a.grad).astype(np.float64).reshape(self.size, -1)
            for (name, kind), a in zip(self.kinds.items(), given)
            if _is_float(kind)
        }

    def weighted(self, name: str, component: int, steps: Any, weights: list[Any]) -> Any:
        """The weighted results with one component of one argument moved."""
        moved = self.values[name].copy()
        moved.reshape(self.size, -1)[:, component] += steps
        found = self.run(self.forward, {**self.values, name: moved})
        with np.errstate(all="ignore"):
            return sum(np.sum(w * f, axis=1) for w, f in zip(weights, found))

    def compare(self) -> list[dict[str, Any]]:
        """For every component of every argument: adjoint, derivative and whether that is trusted."""
        widths = [int(np.prod(getattr(kind, "_shape_", (1,)))) for kind in self.results]
        weights = [self.random.choice([-1.0, 1.0], (self.size, w)) for w in widths]
        pulled = self.pulled(weights)
        unit = STEPS["double" if self.double else "single"]
        found = []
        for name, adjoint in pulled.items():
            for component in range(adjoint.shape[1]):
                place = self.values[name].reshape(self.size, -1)[:, component]
                step = unit * np.maximum(np.abs(place), 0.05)
                middle = self.weighted(name, component, 0.0, weights)
                high, low = (self.weighted(name, component, s * step, weights) for s in (1.0, -1.0))
                near, far = (self.weighted(name, component, s * step / 4.0, weights) for s in (1.0, -1.0))
                with np.errstate(all="ignore"):
                    coarse, fine = (high - low) / (2.0 * step), 2.0 * (near - far) / step
                    sides = (high - middle) / step, (middle - low) / step
                    size = np.abs(fine) + np.abs(coarse)
                    usual = np.nanmedian(size)
                    noise = 0.0 if self.double else SPACING * np.abs(middle) / step
                    seen = np.maximum(np.abs(fine), np.abs(adjoint[:, component]))
                    trusted = (
                        np.isfinite(size)
                        & (noise <= 0.01 * seen)
                        & (np.abs(coarse - fine) <= 0.01 * size + 1e-6 * usual)
                        & (np.abs(sides[0] - sides[1]) <= 0.05 * size + 1e-4 * usual)
                    )
                trusted &= np.isfinite(adjoint[:, component]) & self.same
                found.append(
                    {
                        "name": name,
                        "component": component,
                        "adjoint": adjoint[:, component],
                        "derivative": fine,
                        "trusted": trusted,
                        "signs": weights[0][:, 0] if len(weights) == 1 else np.ones(self.size),
                    }
                )
        return found

    def at(self, sample: int) -> str:
        """The arguments of one sample, as a person would write them."""
        texts = []
        for name, values in self.values.items():
            numbers = [f"{v:.4g}" for v in np.ravel(values[sample])]
            texts.append(f"{name} = {numbers[0] if len(numbers) == 1 else '(' + ', '.join(numbers) + ')'}")
        return ", ".join(texts)


def _judged(row: dict[str, Any], samples: Samples, compared: list[dict[str, Any]]) -> dict[str, Any] | None:
    flat = True
    for part in compared:
        adjoint, derivative = part["adjoint"], np.where(part["trusted"], part["derivative"], 0.0)
        trusted = part["trusted"]
        slopes = np.abs(derivative[trusted & (derivative != 0.0)])
        usual = float(np.median(slopes)) if slopes.size else 0.0
        flat = flat and not np.any(np.abs(derivative) > 1e-9)
        guarded = (np.abs(derivative) < 1e-6 * usual) & (np.abs(adjoint) > GUARD * usual)
        trusted = trusted & ~(guarded & (usual > 0.0))
        row["tested"] += int(np.sum(trusted))
        size = np.maximum(np.abs(adjoint), np.abs(derivative))
        off = trusted & (np.abs(adjoint - derivative) > WRONG * size + 1e-4 * usual)
        if _is_limited(np.abs(adjoint), np.abs(derivative), off, trusted & ~off):
            continue
        for number, spread in enumerate(samples.spreads):
            block = slice(number * SAMPLES, (number + 1) * SAMPLES)
            wrong, known = int(np.sum(off[block])), int(np.sum(trusted[block]))
            if wrong < FEWEST or wrong < SHARE * known:
                continue
            row["wrong"] += wrong
            if not row["at"]:
                sample = block.start + int(np.argmax(np.where(off[block], size[block], -1.0)))
                sign = part["signs"][sample]
                row.update(
                    spread=spread,
                    at=samples.at(sample),
                    argument=part["name"],
                    adjoint=float(sign * adjoint[sample]),
                    derivative=float(sign * part["derivative"][sample]),
                )
    row["surrogate"] = flat and row["wrong"] > 0
    return row if row["tested"] >= FEWEST else None


def _is_limited(adjoint: Any, derivative: Any, off: Any, right: Any) -> bool:
    """Whether the adjoint is right up to a limit and that limit beyond it: gradients that are clipped."""
    if min(np.sum(off), np.sum(right)) < FEWEST:
        return False
    limit = float(np.max(adjoint[off]))
    kept = bool(np.all(adjoint[off] > 0.999 * limit) and np.all(derivative[off] > limit))
    return kept and bool(np.mean(adjoint[right] < 0.99 * limit) > 0.9)


def _wrapper(module: Any, function: Any, kinds: list[Any], results: list[Any]) -> Any:
    """A kernel that calls ``function`` on the elements of arrays."""
    given = [f"a{k}" for k in range(len(kinds))]
    made = [f"r{k}" for k in range(len(results))]
    arguments = ", ".join(f"{n}: A{n}" for n in (*given, *made))
    lines = [
        f"def warplint_samples({arguments}):",
        "    i = wp.tid()",
        f"    {', '.join('x' + n for n in made)} = function({', '.join(n + '[i]' for n in given)})",
        *(f"    {n}[i] = x{n}" for n in made),
    ]
    names: dict[str, Any] = {"wp": warp, "function": function}
    for name, kind in zip((*given, *made), (*kinds, *results)):
        names[f"A{name}"] = warp.array(dtype=kind)
    body = compiled("\n".join(lines) + "\n", "warplint_samples", names)
    return context.Kernel(body, key="warplint_samples", module=module, source="\n".join(lines) + "\n")


def _constants(function: Any) -> list[float]:
    """Numbers in the text of a function, or that it names: thresholds of its branches are among them."""
    tree = source_tree(function.func)
    values = [] if tree is None else [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    closure = inspect.getclosurevars(function.func)
    values += [*closure.globals.values(), *closure.nonlocals.values()]
    found = {float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)}
    return sorted({s * c for c in found if 1e-6 < abs(c) < 1e4 for s in (1.0, -1.0)})


def _is_float(kind: Any) -> bool:
    scalar = getattr(kind, "_wp_scalar_type_", kind)
    return bool(scalar is float or scalar in wptypes.float_types) and not _is_array(kind)


def _is_count(kind: Any) -> bool:
    scalar = getattr(kind, "_wp_scalar_type_", kind)
    return scalar is int or (scalar in wptypes.int_types and scalar not in (warp.uint64, warp.int64))


def _is_array(kind: Any) -> bool:
    return type(kind).__name__ in ("array", "_ArrayAnnotation", "indexedarray")
