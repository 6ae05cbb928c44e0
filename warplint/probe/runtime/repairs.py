"""Kernels built again with one thing changed: which change makes their adjoint right."""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import warp
from warp._src import context

from . import rewrites
from .hooks import Stream
from .rewrites import Body, Rewrite, in_place, source_tree

COMPONENTS = "enable_vector_component_overwrites"


class Repair:
    """A kernel with one thing changed, and what that was."""

    def __init__(
        self,
        what: str,
        kernel: Any,
        name: str = "",
        place: tuple = (),
        function: Any = None,
        *,
        lines: list[tuple[str, int]] | None = None,
        bodies: dict[Any, str] | None = None,
        singles: list[Rewrite] | None = None,
    ) -> None:
        self.what = what
        """components, custom-adjoint, unrolled or guarded"""
        self.kernel = kernel
        self.name = name
        self.place = place
        self.function = function
        """The function whose custom adjoint was left out."""
        self.lines = lines or []
        """The statement that was changed, if it was a single one: places in files."""
        self.bodies = bodies or {}
        """Functions that are read from another text while the kernel is built."""
        self.singles = singles or []
        """The single changes that may be enough."""
        self.told_lines = self.lines

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Warp looks at this option when it builds the kernel's module: at the first launch."""
        option = getattr(warp.config, COMPONENTS, False)
        if self.what == "components" and not self.lines and not self.bodies:
            setattr(warp.config, COMPONENTS, True)
        try:
            with in_place(self.bodies):
                yield
        finally:
            setattr(warp.config, COMPONENTS, option)

    def told(self) -> dict[str, Any]:
        """What is said of a repair outside this process."""
        row = {"what": self.what, "name": self.name, "place": self.place}
        if self.told_lines:
            row["lines"] = self.told_lines
        return row


class Repairs:
    """Builds the changed kernels and runs their adjoints."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.count = 0

    def of(self, kernel: Any, call: dict[str, Any], *, finite: bool = True) -> Iterator[Repair]:
        """The changes worth trying for a kernel, each as a kernel of its own.

        With ``finite`` off, operations that are not finite everywhere are kept away from there, too.
        """
        functions = list(called_functions(kernel.func))
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
        bodies = [Body(None, kernel.func), *(Body(f, f.func) for f in functions if f.native_snippet is None)]
        bodies = [body for body in bodies if body.tree is not None]
        assigned = rewrites.parts(bodies)
        if any(_assigns_parts(body.tree) for body in bodies):
            changed = self.build(kernel, {})
            if changed is not None:
                yield Repair("components", changed, singles=assigned)
        if rewrites.struct_parts(bodies):
            whole = rewrites.joined(assigned, bodies, lambda b: rewrites.Sums(None, b))
            yield from self.rewritten(kernel, [whole], "components", assigned)
        numbers = known_numbers(kernel, call, bodies)
        turned = rewrites.loops(bodies, numbers)
        if turned:
            whole = rewrites.joined(turned, bodies, lambda b: rewrites.Unroll(None, numbers.get(b.owner, {})))
            yield from self.rewritten(kernel, [whole], "unrolled", turned)
        if not finite:
            for rewrite in rewrites.guards(bodies):
                yield from self.rewritten(kernel, [rewrite], "guarded")

    def rewritten(
        self, kernel: Any, found: list[Rewrite], what: str, singles: list[Rewrite] | None = None
    ) -> Iterator[Repair]:
        """A kernel for each rewrite of a statement."""
        options = {"max_unroll": 1 << 20} if what == "unrolled" else {}
        for rewrite in found:
            others = {owner: text for owner, text in rewrite.bodies.items() if owner is not None}
            changed = self.build(kernel, options, rewrite.bodies.get(None))
            if changed is not None:
                lines = self.places(rewrite)
                yield Repair(what, changed, rewrite.name, lines=lines, bodies=others, singles=singles)

    def narrowed(self, kernel: Any, repair: Repair, mends: Callable[[Repair], bool]) -> Repair:
        """The single statement of a repair that is enough by itself, or else the whole of it."""
        if len(repair.singles) == 1:
            repair.told_lines, repair.name = self.places(repair.singles[0]), repair.singles[0].name
        elif repair.singles:
            for single in self.rewritten(kernel, repair.singles, repair.what):
                if mends(single):
                    return single
        return repair

    def places(self, rewrite: Rewrite) -> list[tuple[str, int]]:
        return [(self.stream.sites.name(file) or file, line) for file, line in rewrite.lines]

    def build(self, kernel: Any, options: dict[str, Any], source: str | None = None) -> Any:
        template = getattr(kernel, "generic_parent", None) or kernel
        self.count += 1
        try:
            module = context.Module(f"warplint_repair_{self.count}", None)
            module.options.update(kernel.module.options)
            module.options.update(options)
            extra = {} if source is None else {"source": source}
            built = context.Kernel(
                template.func, key=template.key, module=module, options={**kernel.options, **options}, **extra
            )
            # A generic kernel is made one of the types at hand by its launch, unless they are known.
            return built if template is kernel else built.add_overload([a.type for a in kernel.adj.args])
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


def _assigns_parts(tree: Any) -> bool:
    for node in ast.walk(tree):
        targets: list[Any] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        if any(isinstance(t, (ast.Subscript, ast.Attribute)) for t in targets):
            return True
    return False


def known_numbers(kernel: Any, call: dict[str, Any], bodies: list[Body]) -> dict[Any, dict[str, Any]]:
    """What the names of a kernel and of its functions are worth in a launch, where that is one number."""
    labels = [a.label for a in kernel.adj.args]
    given = dict(zip(labels, [*(call.get("inputs") or ()), *(call.get("outputs") or ())]))
    known = {body.owner: _names(kernel.func if body.owner is None else body.owner.func) for body in bodies}
    known[None] = {**known.get(None, {}), **given}
    passed: dict[Any, dict[str, set[Any]]] = {}
    for body in bodies:  # callers come before what they call
        if body.owner is not None:
            for name, values in passed.get(body.owner, {}).items():
                if len(values) == 1 and None not in values:
                    known[body.owner][name] = next(iter(values))
        for node in ast.walk(body.tree):
            function = _resolve(node.func, known[body.owner]) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and function in known:
                names = [a.arg for a in next(b for b in bodies if b.owner is function).tree.body[0].args.args]
                for name, argument in zip(names, node.args):
                    number = rewrites.number_of(argument, known[body.owner])
                    passed.setdefault(function, {}).setdefault(name, set()).add(number)
    return known


def _names(function: Any) -> dict[str, Any]:
    closure = inspect.getclosurevars(function)
    return {**closure.globals, **closure.nonlocals}
