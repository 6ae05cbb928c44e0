"""Statements of a kernel body: branches, loops, assignments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from warplint.static.host.values import UNKNOWN, Class
from warplint.static.kernels import components, domain, loops
from warplint.static.kernels.calls import Calls
from warplint.static.kernels.domain import CONSTANT, EMPTY, LocalStruct, Taint, TupleValue, Value
from warplint.static.kernels.effects import Frame, spelled_path, value_of
from warplint.static.kernels.expressions import OPERATORS
from warplint.static.kernels.summary import Access, AccessKind, FaultKind, Marker, Site

__all__ = ["Statements"]


class Statements(Calls):
    def block(self, body: Any, frame: Frame) -> bool:
        """Run a block; True if it cannot fall through."""
        if isinstance(body, cst.SimpleStatementSuite):  # ``if x: return``
            return self.statement(body, frame)
        return any(self.statement(statement, frame) for statement in body.body)

    def statement(self, node: Any, frame: Frame) -> bool:
        self.step()
        if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            return any(self.small(small, frame) for small in node.body)
        if isinstance(node, cst.If):
            return self.branch(node, frame)
        if isinstance(node, cst.For):
            iterated = self.expression(node.iter, frame)
            index = Value(depends=value_of(iterated).depends, index=domain.symbol(f"loop:{id(node)}"))
            if value_of(iterated).depends and not _is_range(node.iter):
                index = replace(index, index=None)  # neighbours found by a query: read from memory
            self.loop(node, value_of(iterated).depends, frame, index)
        elif isinstance(node, cst.While):
            self.loop(node, self.value(node.test, frame).depends, frame, None)
        elif isinstance(node, cst.With):
            return self.block(node.body, frame)
        return False

    def small(self, node: Any, frame: Frame) -> bool:
        if isinstance(node, cst.Assign):
            value = self.expression(node.value, frame)
            self.noticed(_needs(value), frame, node)
            for target in node.targets:
                if isinstance(target.target, cst.Name) and isinstance(value, Value):
                    value = self.bounded(target.target.value, value, node.value, frame)
                self.assign(target.target, value, frame, node)
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                value = self.expression(node.value, frame)
                self.noticed(_needs(value), frame, node)
                self.assign(node.target, value, frame, node)
        elif isinstance(node, cst.AugAssign):
            self.augmented(node, frame)
        elif isinstance(node, cst.Expr):
            self.expression(node.value, frame)
        elif isinstance(node, cst.Return):
            value = self.expression(node.value, frame) if node.value is not None else CONSTANT
            self.noticed(_needs(value), frame, node)
            if isinstance(value, Value):
                value = domain.under(value, self.condition)
            frame.returns.append(value)
            return True
        elif isinstance(node, (cst.Break, cst.Continue)):
            return True
        return False

    def branch(self, node: cst.If, frame: Frame) -> bool:
        known = self.static_test(node.test, frame)
        if known is not None:
            if known:
                return self.block(node.body, frame)
            return self.orelse(node, frame)
        test = self.value(node.test, frame).depends
        saved, before, arms = self.condition, dict(frame.names), self.arms
        preserved, one_thread = self.preserved, self.one_thread
        chosen = self.chooses_threads(node.test, frame)
        self.condition = saved | test
        self.arms = (*arms, (id(node), True))
        self.preserved = (*preserved, *self.self_preserving(node.test, frame))
        self.one_thread = one_thread or chosen
        stopped = self.block(node.body, frame)
        then_names, frame.names = frame.names, before
        self.arms, self.preserved = (*arms, (id(node), False)), preserved
        other_stopped = self.orelse(node, frame)
        self.condition, self.arms = saved, arms
        self.one_thread = one_thread
        if stopped and other_stopped:
            return True
        if stopped or other_stopped:
            self.one_thread = one_thread or chosen
            # The rest of the body runs only where the other branch was taken.
            self.condition = saved | test
            self.arms = (*arms, (id(node), other_stopped))
            if other_stopped:
                frame.names = then_names
            return False
        frame.names = self.merge(then_names, frame.names, test)
        return False

    def orelse(self, node: cst.If, frame: Frame) -> bool:
        if isinstance(node.orelse, cst.If):
            return self.branch(node.orelse, frame)
        if isinstance(node.orelse, cst.Else):
            return self.block(node.orelse.body, frame)
        return False

    def merge(self, left: dict[str, Any], right: dict[str, Any], test: frozenset[Access]) -> dict[str, Any]:
        merged = dict(right)
        for name, value in left.items():
            other = right.get(name)
            if isinstance(value, Value) and isinstance(other, Value):
                merged[name] = domain.join(value, other, test)
            else:
                merged[name] = value
        return merged

    def chooses_threads(self, test: Any, frame: Frame) -> bool:
        """Whether a test picks threads by number (``i == 0``), rather than cutting off the last ones."""
        if not isinstance(test, cst.Comparison):
            return False
        sides = [test.left, *(c.comparator for c in test.comparisons)]
        exact = any(isinstance(c.operator, (cst.Equal, cst.NotEqual)) for c in test.comparisons)
        literal = any(isinstance(s, cst.Integer) for s in sides)
        terms = [t for s in sides for t in self.value(s, frame).index or ()]
        return (exact or literal) and any(s.startswith("tid:") for m, _ in terms for s in m)

    def loop(self, node: Any, bound: frozenset[Access], frame: Frame, index: Value | None) -> None:
        saved, arms = self.condition, self.arms
        before = dict(frame.names)
        carried = loops.assigned_names(node.body) if self.is_dynamic(node, frame) else frozenset()
        left = loops.exits(node.body) if carried or self.is_dynamic(node, frame) else None
        known = self.known_in_order(node, carried, frame)
        for _ in range(2):  # the second turn sees what the first one carried over
            self.forget((carried - known) & before.keys(), node, frame)
            if isinstance(node, cst.While):
                bound |= self.value(node.test, frame).depends
            if left is not None:
                bound |= {self.marker("loop", left, frame, FaultKind.BREAK)}
            self.condition = saved | bound
            if index is not None:
                self.assign(node.target, index, frame, node)
            self.block(node.body, frame)
            frame.names = self.merge(frame.names, before, bound)
            before = dict(frame.names)
        self.forget(carried, node, frame)
        self.condition, self.arms = saved, arms

    def known_in_order(self, node: Any, carried: frozenset[str], frame: Frame) -> frozenset[str]:
        """Variables whose values the adjoint of a loop meets, although in another order."""
        steps = loops.advanced_first(node) if carried and isinstance(node, cst.For) else {}
        plain = [name for name, step in steps.items() if not self.value(step, frame).depends]
        return frozenset(plain) if len(plain) == len(steps) else frozenset()

    def is_dynamic(self, node: Any, frame: Frame) -> bool:
        """Whether Warp leaves a loop a loop, instead of unrolling it."""
        if isinstance(node, cst.While):
            return True
        arguments = loops.literal_range(node.iter)
        if arguments is None:
            return not _static_iteration(node.iter)
        numbers = []
        for argument in arguments:
            terms = self.value(argument, frame).index
            if _is_len(argument) or _static_iteration(argument):
                return False  # of a vector, or of something known when the kernel is built
            if terms is None or any(m for m, _ in terms):
                return True
            numbers.append(terms[0][1] if terms else 0)
        if loops.breaks(node.body):
            return True
        if loops.contains_static(node.body) or "max_unroll" in frame.function.module.source.file.text:
            return False
        try:
            return len(range(*numbers)) > loops.MAX_UNROLL
        except ValueError:
            return False

    def forget(self, names: Any, node: Any, frame: Frame) -> None:
        """What a loop has made of these variables is not there when its adjoint runs."""
        for name in sorted(names):
            entry = frame.names.get(name)
            marker = self.marker(name, node, frame, FaultKind.LOOP)
            if isinstance(entry, Value):
                frame.names[name] = _depending(entry, marker)
            elif isinstance(entry, LocalStruct):
                for key, value in list(entry.fields.items()):
                    if isinstance(value, Value):
                        entry.fields[key] = _depending(value, marker)

    def marker(self, name: str, node: Any, frame: Frame, fault: FaultKind) -> Marker:
        made = Marker(name, AccessKind.READ, (), Site(frame.function.module.source, node), fault=fault)
        frame.markers.add(made)
        return made

    def static_test(self, node: Any, frame: Frame) -> bool | None:
        """The truth of a test that is decided when the kernel is built, else None."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            inner = self.static_test(node.expression, frame)
            return None if inner is None else not inner
        value = UNKNOWN
        if isinstance(node, cst.Call) and spelled_path(node.func).endswith("static") and node.args:
            value = self.host.resolve(node.args[0].value, frame.function)
        elif isinstance(node, cst.Name) and node.value not in frame.names:
            value = self.host.resolve(node, frame.function)
        return bool(value) if isinstance(value, (bool, int)) else None

    # -- assignment ----------------------------------------------------------------------------

    def assign(self, target: Any, value: Any, frame: Frame, node: Any) -> None:
        if isinstance(target, cst.Name):
            single = isinstance(value, TupleValue) and value.thread
            frame.names[target.value] = value.items[0] if single else value
        elif isinstance(target, (cst.Tuple, cst.List)):
            items = value.items if isinstance(value, TupleValue) else ()
            for position, element in enumerate(target.elements):
                item = items[position] if position < len(items) else value
                if isinstance(item, TupleValue):
                    item = CONSTANT
                self.assign(element.value, item, frame, node)
        elif isinstance(target, (cst.Subscript, cst.Attribute)):
            self.store(target, value_of(value), AccessKind.STORE, frame, node)

    def store(self, target: Any, value: Value, kind: AccessKind, frame: Frame, node: Any) -> None:
        place = self.place(target, frame)
        if place is not None:
            ref, dims, component = place
            self.write(kind, ref, dims, value, frame, node, component=component, place=target)
            return
        # A component of a local: the local now depends on the new part as well.
        chain = _chain(target)
        root = chain[0]
        if not isinstance(root, cst.Name):
            return
        owner = frame.names.get(root.value)
        site = Site(frame.function.module.source, node)
        in_struct = _is_component_of_field(chain, owner)
        if in_struct and isinstance(owner, (Value, LocalStruct)) and value.active:
            taint = Taint(
                FaultKind.STRUCT_COMPONENT, _text(chain), site, site, value.active_paths, self.steps
            )
            value = replace(value, taints=value.taints | {taint})
        elif value.active and (isinstance(owner, LocalStruct) or getattr(owner, "struct", None) is not None):
            given = value.active_paths
            taint = Taint(FaultKind.FIELD, _text(chain), site, site, given, self.steps, "<1.15")
            value = _tainted(value, taint)
        if isinstance(owner, LocalStruct):
            name = chain[1].attr.value if isinstance(chain[1], cst.Attribute) else "*"
            if len(chain) > 2:
                value = domain.linear(value_of(owner.fields.get(name)), value)
            owner.fields[name] = value
        elif isinstance(owner, Value):
            if in_struct:
                frame.names[root.value] = domain.join(replace(owner, index=None), value, self.condition)
                return
            if owner.tile:
                frame.names[root.value] = replace(domain.linear(owner, value), tile=True)
                return
            key = self.key_of(chain, frame)
            old = components.overwritten(owner, key)
            # a whole field is another matter: its adjoint is cleared
            if kind is AccessKind.STORE and old.active and owner.struct is None:
                body = Site(frame.function.module.source, frame.function.node.name)
                taint = Taint(FaultKind.COMPONENT, root.value, site, body, old.active_paths, self.steps)
                value = replace(value, taints=value.taints | {taint})
            if kind is AccessKind.ACCUMULATE:
                value = domain.linear(old, value)
            after = components.with_component(
                replace(owner, index=None), key, domain.under(value, self.condition)
            )
            frame.names[root.value] = replace(after, struct=owner.struct)

    def key_of(self, chain: list[Any], frame: Frame) -> Any:
        """Which component of a local a target names."""
        key: tuple[Any, ...] = ()
        for link in chain[1:]:
            if isinstance(link, cst.Attribute):
                key += (components.key_of(link.attr.value),)
            else:
                key += self.component_key(link.slice, frame)
        return key

    def bounded(self, name: str, value: Value, node: Any, frame: Frame) -> Value:
        """``if v >= c: v = c``: stored where v was read, the result leads to itself again."""
        old = frame.names.get(name)
        if not isinstance(old, Value) or not old.kept:
            return value
        text = frame.function.module.source.code(node)
        if any(old.kept <= reads and text == bound for reads, bound in self.preserved):
            return replace(value, kept=old.kept)
        return value

    def augmented(self, node: cst.AugAssign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        operator = OPERATORS.get(type(node.operator).__name__.removesuffix("Assign"), "?")
        place = self.place(node.target, frame) if not isinstance(node.target, cst.Name) else None
        if place is not None:
            ref, dims, component = place
            if operator in "+-":
                kind, result = AccessKind.ACCUMULATE, value
            else:
                kind = AccessKind.STORE
                result = self.binary(operator, self.read(ref, dims, frame, node), value, frame, node)
            self.noticed(result.needs, frame, node)
            self.write(kind, ref, dims, result, frame, node, component=component, place=node.target)
            return
        if operator in "+-" and not isinstance(node.target, cst.Name):
            self.noticed(value.needs, frame, node)
            self.store(node.target, value, AccessKind.ACCUMULATE, frame, node)
            return
        result = self.binary(operator, self.value(node.target, frame), value, frame, node)
        self.noticed(result.needs, frame, node)
        self.assign(node.target, result, frame, node)


def _is_range(node: Any) -> bool:
    return isinstance(node, cst.Call) and spelled_path(node.func).rpartition(".")[2] == "range"


def _static_iteration(node: Any) -> bool:
    return isinstance(node, cst.Call) and spelled_path(node.func).rpartition(".")[2] == "static"


def _is_len(node: Any) -> bool:
    return isinstance(node, cst.Call) and spelled_path(node.func) == "len"


def _needs(entry: Any) -> frozenset[Any]:
    if isinstance(entry, TupleValue):
        return EMPTY.union(*(value_of(i).needs for i in entry.items))
    return entry.needs if isinstance(entry, Value) else EMPTY


def _depending(value: Value, marker: Marker) -> Value:
    parts = value.parts
    if parts is not None:
        known = tuple((k, _depending(v, marker)) for k, v in parts.known)
        parts = replace(parts, known=known, rest=_depending(parts.rest, marker))
    return replace(value, depends=value.depends | {marker}, parts=parts)


def _tainted(value: Value, taint: Taint) -> Value:
    """A value that carries a fault, and so does each part of it that has a derivative."""
    parts = value.parts
    if parts is not None:
        known = tuple((k, _tainted(v, taint) if v.active else v) for k, v in parts.known)
        parts = replace(parts, known=known)
    return replace(value, taints=value.taints | {taint}, parts=parts)


def _chain(target: Any) -> list[Any]:
    """A target from its root outwards: ``s``, ``s.v``, ``s.v[0]``."""
    links = [target]
    while isinstance(links[0], (cst.Subscript, cst.Attribute)):
        links.insert(0, links[0].value)
    return links


def _is_component_of_field(chain: list[Any], owner: Any) -> bool:
    """``s.v[0]`` and ``s.v.x``, but not ``s.inner.m``, a field of a struct inside."""
    if len(chain) < 3 or not isinstance(chain[1], cst.Attribute):
        return False
    cls = owner.cls if isinstance(owner, LocalStruct) else getattr(owner, "struct", None)
    for link in chain[1:-1]:
        if not isinstance(link, cst.Attribute) or not isinstance(cls, Class):
            break
        cls = cls.all_fields().get(link.attr.value)
    else:
        if isinstance(cls, Class):
            return False
    last = chain[-1]
    return isinstance(last, cst.Subscript) or last.attr.value in ("x", "y", "z", "w")


def _text(chain: list[Any]) -> str:
    return ".".join([chain[0].value, *(link.attr.value for link in chain[1:2] if hasattr(link, "attr"))])
