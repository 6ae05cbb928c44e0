"""Kernels built again with one thing changed: which change makes their adjoint right."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import warp
from warp._src import context

from .hooks import Stream

COMPONENTS = "enable_vector_component_overwrites"


class Repair:
    """A kernel with one thing changed, and what that was."""

    def __init__(
        self, what: str, kernel: Any, name: str = "", place: tuple = (), function: Any = None
    ) -> None:
        self.what = what
        """components, custom-adjoint or unrolled"""
        self.kernel = kernel
        self.name = name
        self.place = place
        self.function = function
        """The function whose custom adjoint was left out."""

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Warp looks at this option when it builds the kernel's module: at the first launch."""
        option = getattr(warp.config, COMPONENTS, False)
        if self.what == "components":
            setattr(warp.config, COMPONENTS, True)
        try:
            yield
        finally:
            setattr(warp.config, COMPONENTS, option)


class Repairs:
    """Builds the changed kernels and runs their adjoints."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.count = 0

    def of(self, kernel: Any, call: dict[str, Any]) -> Iterator[Repair]:
        """The changes worth trying for a kernel, each as a kernel of its own."""
        functions = list(called_functions(kernel.func))
        bodies = [kernel.func, *(f.func for f in functions)]
        for function in functions:
            custom = function.custom_grad_func
            if custom is None:
                continue
            skipped = getattr(function.adj, "skip_reverse_codegen", None)
            function.custom_grad_func = None
            if skipped is not None:
                function.adj.skip_reverse_codegen = False
            try:
                changed = self.build(kernel, {})
                if changed is not None:
                    file = self.stream.sites.name(custom.adj.filename) or custom.adj.filename
                    line = int(custom.adj.fun_lineno)
                    yield Repair("custom-adjoint", changed, function.key, (file, line), function)
            finally:
                function.custom_grad_func = custom
                if skipped is not None:
                    function.adj.skip_reverse_codegen = skipped
        if any(_assigns_parts(body) for body in bodies):
            changed = self.build(kernel, {})
            if changed is not None:
                yield Repair("components", changed)
        source = _unrolled(kernel, call)
        if source is not None:
            changed = self.build(kernel, {"max_unroll": 1 << 20}, source)
            if changed is not None:
                yield Repair("unrolled", changed)

    def build(self, kernel: Any, options: dict[str, Any], source: str | None = None) -> Any:
        if kernel.is_generic or getattr(kernel, "generic_parent", None) is not None:
            return None
        self.count += 1
        try:
            module = context.Module(f"warplint_repair_{self.count}", None)
            module.options.update(kernel.module.options)
            module.options.update(options)
            extra = {} if source is None else {"source": source}
            return context.Kernel(
                kernel.func, key=kernel.key, module=module, options={**kernel.options, **options}, **extra
            )
        except Exception:
            return None

    def run_adjoint(self, repair: Repair, call: dict[str, Any]) -> bool:
        """Runs the adjoint of a launch with the changed kernel; False if it cannot be built."""
        self.stream.depth += 1
        inside, self.stream.in_backward = self.stream.in_backward, False
        try:
            with repair.in_force():
                warp.launch(**{**call, "kernel": repair.kernel})
        except Exception:
            return False
        finally:
            self.stream.depth -= 1
            self.stream.in_backward = inside
        return True


def source_tree(function: Any) -> Any:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def called_functions(function: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """The ``@wp.func`` functions a body calls, directly or not."""
    seen = set() if seen is None else seen
    tree = source_tree(function)
    if tree is None:
        return
    closure = inspect.getclosurevars(function)
    names = {**closure.globals, **closure.nonlocals}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        target = _resolve(node.func, names)
        if isinstance(target, context.Function) and target.func is not None and id(target) not in seen:
            seen.add(id(target))
            if not target.is_builtin():
                yield target
                yield from called_functions(target.func, seen)


def _resolve(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, names)
        return getattr(owner, node.attr, None) if owner is not None else None
    return None


def _assigns_parts(function: Any) -> bool:
    tree = source_tree(function)
    if tree is None:
        return False
    for node in ast.walk(tree):
        targets: list[Any] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        if any(isinstance(t, (ast.Subscript, ast.Attribute)) for t in targets):
            return True
    return False


def _unrolled(kernel: Any, call: dict[str, Any]) -> str | None:
    """The kernel's source with the bounds of its loops written as the numbers of this launch."""
    tree = source_tree(kernel.func)
    if tree is None:
        return None
    labels = [a.label for a in kernel.adj.args]
    given = dict(zip(labels, [*(call.get("inputs") or ()), *(call.get("outputs") or ())]))
    closure = inspect.getclosurevars(kernel.func)
    names = {**closure.globals, **closure.nonlocals, **given}
    changed = False
    for node in ast.walk(tree):
        if not (isinstance(node, ast.For) and isinstance(node.iter, ast.Call)):
            continue
        if not (isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"):
            continue
        numbers = [n for n in (_number(a, names) for a in node.iter.args) if n is not None]
        if len(numbers) != len(node.iter.args):
            continue
        if len(range(*numbers)) > 256:
            return None
        node.iter.args = [ast.Constant(n) for n in numbers]
        changed = True
    return ast.unparse(tree) if changed else None


def _number(node: ast.expr, names: dict[str, Any]) -> int | None:
    try:
        value = eval(compile(ast.Expression(node), "<bound>", "eval"), {"__builtins__": {}}, names)
        return int(value) if not isinstance(value, bool) else None
    except Exception:
        return None
