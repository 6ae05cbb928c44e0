"""Kernels and custom adjoints of a file that no program reaches, tried on arguments made up for them.

The file is imported, nothing of it is called. Every kernel is tried in a child of its own, built with
bounds checks: an index outside an array ends that child, and its arguments were the wrong ones.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from warp._src import context

from . import factories, made_inputs, messages
from .forks import ChildFailure, Reporter, run_in_child
from .function_tests import custom_functions, test_function
from .hooks import Stream
from .launch_tests import WRONG, overflows, trial_errors
from .made_inputs import LAYOUTS, SPREADS, Inputs, Unmakeable, thread_dimensions
from .repairs import Repair, Repairs
from .rewrites import source_tree

SEEDS = (1, 2)
DIRECTIONS = 5
"""For each set of arguments."""
FEWEST = 6
"""Directions that can be trusted, of all that are tried."""
SECONDS = 30.0
"""For one kernel and one way of filling its arguments, compiling included."""


class Synthesised:
    """Tries the kernels that ``names`` lists and the custom adjoints of one file."""

    def __init__(
        self, stream: Stream, send: Callable[[dict[str, Any]], None], deadline: float, program: str
    ) -> None:
        self.stream = stream
        self.send = send
        self.deadline = deadline
        self.program = program

    def run(self, names: list[str], *, functions: bool) -> str | None:
        """Sends a row for each that could be tried; or says why the file cannot be imported."""
        try:
            listed = self.child(self.list_functions)
        except ChildFailure as failure:
            return f"importing it {failure.reason}"
        if "error" in listed:
            return str(listed["error"])
        self.send({"type": "inputs", "files": listed["files"], "listings": listed["listings"]})
        rows = [row for row in map(self.kernel, names) if row is not None]
        untried = {row["untried"]: row["why"] for row in rows if "untried" in row}
        tested = [messages.cause(row) for row in rows if "kernel" in row]
        self.send({"type": "launch-tests", "kernels": tested, "untried": untried})
        if functions:
            found = [self.function(key) for key in listed["functions"]]
            self.send({"type": "function-tests", "functions": [row for row in found if row is not None]})
        return None

    def child(self, work: Callable[[], Any]) -> Any:
        def report(reporter: Reporter) -> None:
            reporter.leave(work())

        return run_in_child(report, min(self.deadline, time.monotonic() + SECONDS))

    # -- in children ---------------------------------------------------------------------

    def load(self) -> Any:
        """Imports the file under the name that its package gives it."""
        directory, name = os.path.split(self.program)
        parts = [] if name == "__init__.py" else [os.path.splitext(name)[0]]
        while os.path.isfile(os.path.join(directory, "__init__.py")):
            directory, package = os.path.split(directory)
            parts.insert(0, package)
        sys.argv = [self.program]
        sys.path[0] = directory
        self.stream.depth += 1  # nothing here is an event of a program
        return importlib.import_module(".".join(parts))

    def list_functions(self) -> dict[str, Any]:
        module = self.load()
        keys = [f.key for f in custom_functions(module) if self.here(f.func)]
        inputs = self.stream.inputs
        return {"functions": keys, "files": inputs.files(), "listings": inputs.listings()}

    def here(self, function: Any) -> bool:
        code = getattr(function, "__code__", None)
        return code is not None and os.path.realpath(code.co_filename) == os.path.realpath(self.program)

    def function(self, key: str) -> dict[str, Any] | None:
        def work() -> Any:
            found = next(f for f in custom_functions(self.load()) if f.key == key)
            return test_function(self.stream, found)

        try:
            row = self.child(work)
        except ChildFailure:
            return None
        return row if row and "error" not in row else None

    def kernel(self, name: str) -> dict[str, Any] | None:
        """The first way of filling its arguments that stays inside the arrays decides."""
        for layout in LAYOUTS:
            if time.monotonic() > self.deadline:
                return None
            try:
                row = self.child(lambda chosen=layout: self.try_kernel(name, chosen))  # type: ignore[misc]
            except ChildFailure as failure:
                if failure.hung:
                    return None
                continue
            return row if row and ("kernel" in row or "untried" in row) else None
        return None

    def try_kernel(self, name: str, layout: tuple[int, int]) -> dict[str, Any] | None:
        module = self.load()
        kernel = next((k for k in _kernels() if k.adj.fun_name == name and self.here(k.func)), None)
        kernel = kernel or factories.make(module, name)
        if kernel is None:
            return {"untried": name, "why": "no call of the function that defines it could be made up"}
        if not _goes_back(kernel):
            return None
        try:
            trials = Trials(self.stream, made_inputs.concrete(kernel), layout)
        except Unmakeable as what:
            return {"untried": name, "why": f"it takes {what}, which cannot be made up"}
        row: dict[str, Any] = {
            "key": ("adjoint", name),
            "kernel": name,
            "kernel_file": self.stream.sites.name(kernel.adj.filename) or kernel.adj.filename,
            "kernel_line": int(kernel.adj.fun_lineno),
            "stack": [],
            "tested": trials.tested,
            "wrong": 0,
            "error": 0.0,
            "finite": True,
            "natives": [],
            "repairs": [],
        }
        if trials.wrong:
            error = trials.alone()
            repairs = trials.repairs() if error is not None else []
            # What a query finds jumps, and no adjoint says so: there a repair has to tell.
            if error is not None and (repairs or not trials.handles):
                row.update(wrong=1, error=error, repairs=repairs)
        elif trials.overflow:
            row.update(wrong=1, finite=False)
        return row


class Trials:
    """The tests of one kernel on several spreads of numbers."""

    def __init__(self, stream: Stream, kernel: Any, layout: tuple[int, int]) -> None:
        self.stream, self.kernel, self.layout = stream, kernel, layout
        self.repair = Repairs(stream)
        self.checked = self.build({})
        self.tested = 0
        self.overflow = False
        self.handles = False
        self.wrong = ""
        for spread in SPREADS:
            errors = self.errors(self.checked, spread)
            self.tested += len(errors)
            if not self.wrong and _are_wrong(errors):
                self.wrong = spread
            made = Inputs(self.checked, layout, spread, SEEDS[0])
            self.handles = bool(made.kept)
            self.overflow = self.overflow or overflows(stream, made.call, made.arrays)

    def build(self, options: dict[str, Any], source: str | None = None) -> Any:
        built = self.repair.build(self.kernel, {"mode": "debug", **options}, source)
        if built is None:
            raise Unmakeable("types that are not known")
        return built

    def errors(self, kernel: Any, spread: str, adjoint: Any = None) -> list[float]:
        """The mismatches that can be trusted, along directions from several sets of arguments."""
        found: list[float | None] = []
        for seed in SEEDS:
            made = Inputs(kernel, self.layout, spread, seed)
            found += trial_errors(self.stream, made.call, made.arrays, adjoint, DIRECTIONS)
        return [e for e in found if e is not None]

    def alone(self) -> float | None:
        """The error of one thread by itself: what threads do to each other is no fault of the kernel."""
        source = _one_thread(self.kernel)
        errors = self.errors(self.build({}, source) if source else self.checked, self.wrong)
        return float(np.median(errors)) if _are_wrong(errors) else None

    def repairs(self) -> list[dict[str, Any]]:
        """Which change of the kernel makes its test pass."""
        call = Inputs(self.checked, self.layout, self.wrong, SEEDS[0]).call

        def mends(repair: Repair) -> bool:
            try:
                with repair.in_force():
                    errors = self.errors(self.checked, self.wrong, repair.kernel)
            except Exception:
                return False
            return len(errors) >= FEWEST and max(errors) <= WRONG

        for repair in self.repair.of(self.kernel, call):
            if mends(repair):
                return [self.repair.narrowed(self.kernel, repair, mends).told()]
        return []


def _are_wrong(errors: list[float]) -> bool:
    """A direction may miss a fault by chance; nothing makes a right adjoint fail along most of them."""
    return len(errors) >= FEWEST and sum(e > WRONG for e in errors) > len(errors) / 2


def _kernels() -> Iterator[Any]:
    for module in list(context.user_modules.values()):
        yield from list(module.kernels.values())


def _goes_back(kernel: Any) -> bool:
    options = {**kernel.module.options, **kernel.options}
    return options.get("enable_backward") is not False


def _one_thread(kernel: Any) -> str | None:
    """The kernel's source, with all threads but an inner one sent home."""
    tree = source_tree(kernel.func)
    calls = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value) == "tid"
    ]
    if not calls:
        return None
    names = [f"warplint_thread_{k}" for k in range(thread_dimensions(kernel))]
    target = names[0] if len(names) == 1 else f"({', '.join(names)})"
    test = " or ".join(f"{name} != 1" for name in names)
    lines = ast.parse(f"{target} = tid()\nif {test}:\n    return").body
    lines[0].value = copy.deepcopy(calls[0])  # type: ignore[attr-defined]
    tree.body[0].body[:0] = lines
    return ast.unparse(ast.fix_missing_locations(tree))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
