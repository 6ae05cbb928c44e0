"""Execution of statements: modules, definitions, assignments, branches, loops, with-blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from warplint.static.host.core import Signal, StopGeneratorError, truth
from warplint.static.host.events import Recording
from warplint.static.host.expressions import Expressions
from warplint.static.host.values import (
    UNKNOWN,
    UNKNOWN_LENGTH,
    Adjoint,
    Buffer,
    Class,
    Deferred,
    Dict,
    External,
    Function,
    Generator,
    Instance,
    List,
    Mark,
    Module,
    Names,
    Placeholder,
    Pointer,
    Range,
    Scope,
    Tape,
    Unknown,
    View,
    base_of,
)

__all__ = ["Statements"]

ALL_TURNS = 10
"""Loops up to this length run in full; longer ones run their first and their last turns."""
EDGE_TURNS = 4
TAPED_TURNS = 2
"""Turns of a loop whose body completes a recording: the second shows what the first left behind."""


class _Loop:
    """What the turns of a ``for`` loop have come to."""

    def __init__(self, completed: int) -> None:
        self.completed = completed
        self.taped = 0
        self.over = False
        self.broken = False
        self.signal: Signal | None = None


class Statements(Expressions):
    """Statements, in the order in which Python would run them."""

    def _import(self, node: cst.Import) -> None:
        raise NotImplementedError

    def _import_from(self, node: cst.ImportFrom) -> None:
        raise NotImplementedError

    # -- blocks -------------------------------------------------------------------------------

    def block(self, body: Any) -> Signal | None:
        if isinstance(body, cst.SimpleStatementSuite):  # ``if x: return``
            return self.statement(body)
        for statement in body.body:
            signal = self.statement(statement)
            if signal is not None:
                return signal
        return None

    def statement(self, node: Any) -> Signal | None:
        self.step()
        if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            self.frame.statement = self.site(node)
            for small in node.body:
                signal = self.small(small)
                if signal is not None:
                    return signal
            return None
        handler = _COMPOUND.get(type(node))
        return handler(self, node) if handler is not None else None

    def small(self, node: Any) -> Signal | None:
        if isinstance(node, cst.Expr):
            self.evaluate(node.value)
        elif isinstance(node, cst.Assign):
            value = self.evaluate(node.value)
            for target in node.targets:
                self.assign_target(target.target, value, node.value)
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self.assign_target(node.target, self.evaluate(node.value), node.value)
        elif isinstance(node, cst.AugAssign):
            self._augmented(node)
        elif isinstance(node, cst.Return):
            return Signal("return", self.evaluate(node.value) if node.value is not None else None)
        elif isinstance(node, cst.Raise):
            return Signal("raise")
        elif isinstance(node, cst.Break):
            return Signal("break")
        elif isinstance(node, cst.Continue):
            return Signal("continue")
        elif isinstance(node, cst.Import):
            self._import(node)
        elif isinstance(node, cst.ImportFrom):
            self._import_from(node)
        elif isinstance(node, cst.Global):
            self.frame.scope.global_names.update(n.name.value for n in node.names)
        elif isinstance(node, cst.Nonlocal):
            self.frame.scope.outer_names.update(n.name.value for n in node.names)
        elif isinstance(node, cst.Del):
            pass
        return None

    # -- assignment ---------------------------------------------------------------------------

    def assign_target(self, target: Any, value: Any, source: Any = None) -> None:
        """Assign to a name, attribute, subscript or a pattern of them; ``source`` is the right side."""
        if isinstance(target, cst.Name):
            self.bind(target.value, value, self._mark(source, value, self._bound_name(target.value)))
        elif isinstance(target, cst.Attribute):
            self._assign_attribute(target, value, source)
        elif isinstance(target, cst.Subscript):
            self._assign_item(target, value, source)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target, value, source)
        elif isinstance(target, cst.StarredElement):
            self.assign_target(target.value, value)

    def _unpack(self, target: Any, value: Any, source: Any) -> None:
        elements = list(target.elements)
        sources: list[Any] = [None] * len(elements)
        if isinstance(source, (cst.Tuple, cst.List)) and len(source.elements) == len(elements):
            sources = [e.value for e in source.elements]
        items = self.iterate(value)
        star = next((k for k, e in enumerate(elements) if isinstance(e, cst.StarredElement)), None)
        if items is not None and star is not None:
            tail = len(elements) - star - 1
            middle = items[star : len(items) - tail]
            items = [*items[:star], List(middle), *items[len(items) - tail :]]
        if items is None and isinstance(value, Placeholder):
            items = [self.child(value, k, f"{value.name}[{k}]") for k in range(len(elements))]
        # Marks are taken before any target is bound: ``a, b = b, a`` reads the old state.
        for position, element in enumerate(elements):
            item = items[position] if items is not None and position < len(items) else UNKNOWN
            inner = element.value
            self.assign_target(inner, item, sources[position])

    def _bound_name(self, name: str) -> Any:
        return self.frame.scope.names.get(name)

    def _mark(self, source: Any, value: Any, previous: Any) -> Mark | None:
        """The mark of a name that gets ``value`` from the expression ``source``."""
        if not isinstance(source, (cst.Name, cst.Attribute, cst.Subscript)):
            return None
        if not isinstance(value, (Buffer, View, Instance, List, Dict, Placeholder, tuple)):
            return None
        inherited = self.origin(source)
        slot = inherited.slot if inherited is not None else None
        if isinstance(source, cst.Name) or (previous is not None and previous is not value):
            return Mark(self.frame.statement, slot)
        if inherited is not None and inherited.statement is not None:
            return inherited
        return Mark(self.frame.statement, slot)

    def _assign_attribute(self, target: cst.Attribute, value: Any, source: Any) -> None:
        owner = self.evaluate(target.value)
        name = target.attr.value
        self.adjoints_met += name == "grad"
        if isinstance(owner, Instance):
            if isinstance(owner.cls, Class):
                prop = owner.cls.lookup(name)
                if isinstance(prop, Function) and prop.setter is not None:
                    self.call_function(prop.setter, [owner, value], {}, target)
                    return
            mark = self._mark(source, value, owner.attributes.get(name))
            self.mutated(owner, name, owner.attributes.get(name), value, target)
            self.put(owner.attributes, name, value)
            self.note(owner.bindings, name, mark)
            spelled = self.frame.module.source.code(target)
            self.christen(value, spelled)
        elif isinstance(owner, (Buffer, View)):
            base = base_of(owner)
            if base is not None and name == "requires_grad":
                base.requires_grad = value if isinstance(value, bool) else None
            elif base is not None and name == "grad":
                self.seeds[base.number] = base
                self.lived("clear", target, buffer=base)
        elif isinstance(owner, (Module, Class)):
            names = owner.scope.names if isinstance(owner, Module) else owner.attributes
            self.put(names, name, value)
        elif isinstance(owner, Placeholder):
            if name == "requires_grad":
                array = self.as_array(owner)
                if isinstance(array, Buffer) and isinstance(value, bool):
                    array.requires_grad = value
            else:
                self.put(owner.children, name, value)
        elif isinstance(owner, Function):
            self.put(owner.attributes, name, value)
        elif isinstance(owner, External) and f"{owner.name}.{name}" == "warp.config.enable_backward":
            self.switch_backward(None, value, target)

    def switch_backward(self, module: Any, value: Any, node: Any) -> None:
        """A statement turns backward code on or off: for one module, or (None) for those made from now on."""
        if value is False:
            self.no_backward[module] = self.site(node)
        else:
            self.no_backward.pop(module, None)
        current = self.frame.module
        if module is None and current is not None:
            line = current.source.location(node).line
            kernels = [p.first for p in current.source.pieces if any("kernel" in d for d in p.decorators)]
            if min(kernels, default=line) >= line:
                # A module takes the configuration over when its first kernel is defined.
                current.no_backward = self.no_backward.get(None)

    def _assign_item(self, target: cst.Subscript, value: Any, source: Any) -> None:
        owner = self.evaluate(target.value)
        index = self._index(target)
        if isinstance(owner, Pointer):
            self.written_through(owner, target)
        elif isinstance(owner, List):
            if isinstance(index, int) and -len(owner.items) <= index < len(owner.items):
                position = index % len(owner.items)
                mark = self._mark(source, value, owner.items[position])
                self.mutated(owner, position, owner.items[position], value, target)
                self.touch(owner.items)
                owner.items[position] = value
                self.note(owner.bindings, position, mark)
            elif isinstance(index, slice) and isinstance(value, (List, tuple)):
                self.touch(owner.items)
                owner.items[index] = value.items if isinstance(value, List) else list(value)
            elif not isinstance(index, int):
                # Some element changed and nobody knows which: forget all of them.
                self.touch(owner.items)
                owner.items[:] = [UNKNOWN] * len(owner.items)
        elif isinstance(owner, Dict):
            try:
                self.put(owner.items, index, value)
            except TypeError:
                owner.exact = False
            else:
                if isinstance(index, Unknown):
                    owner.exact = False
        elif isinstance(owner, Placeholder) and isinstance(index, (int, str)):
            self.put(owner.children, index, value)
        elif isinstance(owner, Instance) and isinstance(owner.cls, Class):
            method = owner.cls.lookup("__setitem__")
            if isinstance(method, Function):
                self.call_function(method, [owner, index, value], {}, target)

    def _augmented(self, node: cst.AugAssign) -> None:
        left = self.evaluate(node.target)
        right = self.evaluate(node.value)
        name = type(node.operator).__name__.removesuffix("Assign")
        if isinstance(left, Pointer):  # in place: the name keeps its object
            self.written_through(left, node)
            return
        if isinstance(left, Adjoint):  # scaled or clipped in place
            self.lived("read", node, buffer=left.base, copied=True)
            return
        if isinstance(left, List) and name == "Add":
            items = self.iterate(right)
            self.touch(left.items)
            if items is None:
                left.exact = False
            else:
                left.items.extend(items[: 2000 - len(left.items)])
            return
        self.assign_target(node.target, self.operate(name, left, right, node))

    # -- control flow -------------------------------------------------------------------------

    def _if(self, node: cst.If) -> Signal | None:
        self.frame.statement = self.site(node)
        known = truth(self.evaluate(node.test))

        def other() -> Signal | None:
            if node.orelse is None:
                return None
            return self._if(node.orelse) if isinstance(node.orelse, cst.If) else self.block(node.orelse.body)

        if known is True:
            return self.block(node.body)
        if known is False:
            return other()
        return self.undecided(lambda: self.block(node.body), other)

    def _for(self, node: cst.For) -> Signal | None:
        self.frame.statement = self.site(node)
        iterable = self.evaluate(node.iter)
        loop = _Loop(len(self.recordings))
        if isinstance(iterable, Generator):
            turn = iter(range(1 << 30))

            def consume(item: Any) -> None:
                if self._turn(node, next(turn), item, None, loop):
                    raise StopGeneratorError

            try:
                self.drive(iterable, consume)
            except StopGeneratorError:
                if not loop.over:
                    raise
        else:
            for number, item, mark in self._turns(iterable):
                if self._turn(node, number, item, mark, loop):
                    break
        if loop.signal is None and not loop.broken and node.orelse is not None:
            return self.block(node.orelse.body)
        return loop.signal

    def _turn(self, node: cst.For, number: int, item: Any, mark: Mark | None, loop: _Loop) -> bool:
        """One turn of a loop; whether it was the last one."""
        self.step()
        self.turns.append(number)
        try:
            if isinstance(node.target, cst.Name):
                self.bind(node.target.value, item, mark)
            else:
                self.assign_target(node.target, item)
            signal = self.block(node.body)
        finally:
            self.turns.pop()
        if signal is not None and signal.kind != "continue":
            loop.over = True
            loop.broken = signal.kind == "break"
            loop.signal = None if loop.broken else signal
        elif len(self.recordings) > loop.completed and not self.active:
            loop.completed = len(self.recordings)
            loop.taped += 1
            loop.over = loop.taped >= TAPED_TURNS
        return loop.over

    def _turns(self, iterable: Any) -> list[tuple[int, Any, Mark | None]]:
        """The turns of a loop that are run, with the value of the loop variable."""
        if isinstance(iterable, Range):
            start = iterable.start if isinstance(iterable.start, int) else 0
            step = iterable.step if isinstance(iterable.step, int) and iterable.step else 1
            stop = iterable.stop
            if not isinstance(stop, int):
                stop = start + (UNKNOWN_LENGTH - 1) * step
            numbers = range(start, stop, step)
            picked = _edges(len(numbers))
            return [(k, numbers[k], None) for k in picked]
        items = self.iterate(iterable)
        if items is None:
            if isinstance(iterable, Placeholder):
                return [(k, self.child(iterable, k, f"{iterable.name}[{k}]"), None) for k in range(3)]
            return [(k, UNKNOWN, None) for k in range(3)]
        if isinstance(iterable, List):
            slots = [Mark(None, (iterable, k)) for k in range(len(items))]
            return [(k, items[k], slots[k]) for k in _edges(len(items))]
        return [(k, items[k], None) for k in _edges(len(items))]

    def _while(self, node: cst.While) -> Signal | None:
        self.frame.statement = self.site(node)
        completed = len(self.recordings)
        taped = 0
        for turn in range(4 * ALL_TURNS):
            self.step()
            known = truth(self.evaluate(node.test))
            if known is False or (known is None and turn >= EDGE_TURNS):
                break
            self.turns.append(turn)
            try:
                signal = self.block(node.body)
            finally:
                self.turns.pop()
            if signal is not None and signal.kind != "continue":
                return None if signal.kind == "break" else signal
            if len(self.recordings) > completed and not self.active:
                completed = len(self.recordings)
                taped += 1
                if taped >= TAPED_TURNS:
                    break
        return None

    def _try(self, node: Any) -> Signal | None:
        signal = self.block(node.body)
        if signal is not None and signal.kind == "raise":
            signal = None  # some handler took it; which one is not known
        for handler in node.handlers:
            self._fallbacks(handler.body)
        if signal is None and node.orelse is not None:
            signal = self.block(node.orelse.body)
        if node.finalbody is not None:
            last = self.block(node.finalbody.body)
            signal = last or signal
        return signal

    def _fallbacks(self, body: Any) -> None:
        """What a handler defines for the case that an import failed, unless it is there already."""
        for statement in body.body:
            definition = isinstance(statement, (cst.FunctionDef, cst.ClassDef))
            if definition and self.frame.scope.find(statement.name.value) is None:
                self.statement(statement)

    def _with(self, node: cst.With) -> Signal | None:
        self.frame.statement = self.site(node)
        return self._with_items(node, list(node.items))

    def _with_items(self, node: cst.With, items: list[cst.WithItem]) -> Signal | None:
        if not items:
            return self.block(node.body)
        item, *rest = items
        manager = self.evaluate(item.item)
        if isinstance(manager, Generator):  # of a ``@contextmanager``
            return self._with_generator(node, manager, item, rest)
        entered = self.enter(manager, item.item)
        if item.asname is not None:
            self.assign_target(item.asname.name, entered)
        try:
            return self._with_items(node, rest)
        finally:
            self.leave(manager, node)

    def _with_generator(
        self, node: cst.With, manager: Generator, item: cst.WithItem, rest: list[cst.WithItem]
    ) -> Signal | None:
        ran: list[Signal | None] = []

        def consume(value: Any) -> None:
            if not ran:
                if item.asname is not None:
                    self.assign_target(item.asname.name, value)
                ran.append(self._with_items(node, rest))

        self.drive(manager, consume)
        return ran[0] if ran else self._with_items(node, rest)

    def enter(self, manager: Any, node: Any, *, handed_in: bool = False) -> Any:
        """``__enter__`` of a context manager; what a tape that was handed in holds already is not known."""
        if isinstance(manager, Placeholder) and "tape" in manager.name.lower():
            # a tape that somebody handed in
            if "<tape>" not in manager.children:
                self.events += 1
                manager.children["<tape>"] = Tape(self.events, self.site(node))
            self.enter(manager.children["<tape>"], node, handed_in=True)
            return manager
        if isinstance(manager, Tape):
            current = next(
                (
                    r
                    for r in reversed(self.recordings)
                    if r.tape is manager and not r.backwards and not r.closed
                ),
                None,
            )
            if current is None:
                current = Recording(manager, self.site(node), call_path=self.call_path())
                current.prelude = [] if handed_in else list(self.prelude)
                self.recordings.append(current)
            self.lived("enter", node, tape=manager, recording=current)
            self.active = [*self.active, current]
            self.waiting = [r for r in self.waiting if r is not current]
            return manager
        if isinstance(manager, Instance) and isinstance(manager.cls, Class):
            method = manager.cls.lookup("__enter__")
            if isinstance(method, Function):
                return self.call_function(method, [manager], {}, node)
            return manager
        return manager if isinstance(manager, Placeholder) else UNKNOWN

    def leave(self, manager: Any, node: Any) -> None:
        if isinstance(manager, Placeholder):
            manager = manager.children.get("<tape>")
        if isinstance(manager, Tape):
            left = [r for r in self.active if r.tape is manager]
            self.active = [r for r in self.active if r.tape is not manager]
            for recording in left:
                self.wait(recording)
        elif isinstance(manager, Instance) and isinstance(manager.cls, Class):
            method = manager.cls.lookup("__exit__")
            if isinstance(method, Function):
                self.call_function(method, [manager, None, None, None], {}, node)
        elif isinstance(manager, Instance) and manager.cls.last == "ScopedCapture":
            self.lived("forget", node)  # nothing of it has run yet

    def _match(self, node: Any) -> Signal | None:
        signal: Signal | None = None
        for case in node.cases:
            body = case.body
            signal = self.undecided(lambda body=body: self.block(body), lambda: None)  # type: ignore[misc]
        return signal

    # -- definitions --------------------------------------------------------------------------

    def _function(self, node: cst.FunctionDef) -> None:
        self.bind(node.name.value, self.make_function(node))

    def make_function(self, node: cst.FunctionDef) -> Any:
        """The function of a definition, or what its decorators make of it."""
        frame = self.frame
        frame.statement = self.site(node)
        # Class bodies are no enclosing scope for the functions in them.
        scope = frame.scope
        if scope.is_class and scope.parent is not None:
            scope = scope.parent
        value: Any = Function(
            node.name.value,
            node,
            frame.module,
            scope,
            defaults=self.defaults(node.params),
            may_yield=frame.may_yield,
        )
        for decorator in reversed(node.decorators):
            value = self.decorate(decorator.decorator, value)
        return value

    def decorate(self, decorator: Any, value: Any) -> Any:
        raise NotImplementedError

    def _class(self, node: cst.ClassDef) -> None:
        self.bind(node.name.value, self.make_class(node))

    def make_class(self, node: cst.ClassDef, members: Callable[[], None] | None = None) -> Any:
        """The class of a definition; ``members`` carries out its body where the node holds none."""
        frame = self.frame
        frame.statement = self.site(node)
        bases = tuple(self.evaluate(a.value) for a in node.bases)
        cls = Class(node.name.value, node, frame.module, bases)
        cls.is_enum = cls.derives_from("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")
        cls.is_tuple = cls.derives_from("NamedTuple") or any(
            isinstance(b, Class) and b.is_tuple for b in bases
        )
        cls.is_dataclass = cls.is_tuple or any(isinstance(b, Class) and b.is_dataclass for b in bases)
        names = Names()
        outer = frame.scope
        frame.scope = Scope(names, outer, is_class=True)
        self._fields.append(cls.fields)
        try:
            if members is not None:
                members()
            else:
                body = node.body
                for statement in [body] if isinstance(body, cst.SimpleStatementSuite) else body.body:
                    self.note_fields([statement])
                    self.statement(statement)
        finally:
            self._fields.pop()
            frame.scope = outer
        cls.attributes = names
        for name in names:
            member = names.raw(name)
            if isinstance(member, (Function, Deferred)) and member.owner is None:
                member.owner = cls
        value: Any = cls
        for decorator in reversed(node.decorators):
            value = self.decorate(decorator.decorator, value)
        return value

    def note_fields(self, statements: Any) -> None:
        """Annotated names in the body of the class that is being made."""
        for statement in statements:
            if isinstance(statement, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
                for small in statement.body:
                    if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                        annotation = self.evaluate_annotation(small.annotation.annotation)
                        self._fields[-1][small.target.value] = annotation

    def evaluate_annotation(self, node: Any) -> Any:
        """The value of an annotation, quoted or not."""
        value = self.evaluate(node)
        if isinstance(value, str):
            try:
                return self.evaluate(cst.parse_expression(value))
            except cst.ParserSyntaxError:
                return UNKNOWN
        return value


def _edges(count: int) -> list[int]:
    """The turns that are run of ``count`` turns: all of a short loop, both ends of a long one."""
    if count <= ALL_TURNS:
        return list(range(count))
    return [*range(EDGE_TURNS), *range(count - EDGE_TURNS, count)]


_COMPOUND: dict[type, Any] = {
    cst.If: Statements._if,
    cst.For: Statements._for,
    cst.While: Statements._while,
    cst.Try: Statements._try,
    cst.TryStar: Statements._try,
    cst.With: Statements._with,
    cst.FunctionDef: Statements._function,
    cst.ClassDef: Statements._class,
    cst.Match: Statements._match,
}
