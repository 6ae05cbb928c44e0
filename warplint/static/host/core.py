"""The state of the abstract interpreter and what changes it: names, containers, branches, events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from warplint.source.discovery import SourceFile
from warplint.source.imports import ImportResolver
from warplint.static.host.events import Binding, Event, Mutation, Recording
from warplint.static.host.life import Life
from warplint.static.host.values import (
    UNKNOWN,
    Buffer,
    Carried,
    Class,
    Deferred,
    Dict,
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
)
from warplint.static.kernels.summary import KernelSummary, Site
from warplint.static.syntax import SourceModule, parse

__all__ = ["MAX_STEPS", "BudgetExceededError", "Core", "Frame", "Project", "Signal", "StopGeneratorError"]

MAX_STEPS = 250_000
"""Evaluated nodes an entry may cost before the interpretation stops where it is."""
MAX_DEPTH = 48
_MAX_WAITING = 7
_MAX_PRELUDE = 40
_MAX_CHANGES = 2000


class BudgetExceededError(Exception):
    """The entry cost more than it may; what was recorded so far stays valid."""


class Signal:
    """Why a block was left early: return, break, continue or raise."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind = kind
        self.value = value


class StopGeneratorError(Exception):
    """Whoever consumes a generator wants no more of it."""


class Project:
    """Parsed modules and kernel summaries, shared by all entries of a run."""

    def __init__(self, resolver: ImportResolver) -> None:
        self.resolver = resolver
        self._parsed: dict[Path, SourceModule | None] = {}
        self._reaches: dict[Path, Reach] = {}
        self.generators: dict[Any, bool] = {}
        """Which functions yield, by their nodes."""

    def parse(self, file: SourceFile) -> SourceModule | None:
        if file.path not in self._parsed:
            self._parsed[file.path] = parse(file)
        return self._parsed[file.path]

    def changes_warp(self, file: SourceFile, script: SourceFile) -> bool:
        """Whether importing a file may change Warp's configuration, by itself or by what it imports."""
        reach = self._reach_of(script)
        return file.path in reach.configuring or file.path not in reach.files

    def registrars(self, file: SourceFile, script: SourceFile) -> list[SourceFile]:
        """The files that change what a module holds when they are imported (tables of solvers …)."""
        return self._reach_of(script).registrars.get(file.path, [])

    def _reach_of(self, script: SourceFile) -> Reach:
        if script.path not in self._reaches:
            self._reaches[script.path] = self._find_reach(script)
        return self._reaches[script.path]

    def _find_reach(self, script: SourceFile) -> Reach:
        importers: dict[Path, list[Path]] = {script.path: []}
        registrars: dict[Path, list[SourceFile]] = {}
        queue, configuring = [script], []
        while queue:
            file = queue.pop()
            for item in file.facts.effects:
                if item.name.partition(".")[0] == "warp" and not item.level:
                    configuring.append(file.path)
                    continue
                changed = self.resolver.resolve(item.name, item.level, file.path, script.path)
                if changed is not None and b"warp" in changed.data:
                    registrars.setdefault(changed.path, []).append(file)
            for target in self.resolver.imported(file, script.path):
                if target.path not in importers:
                    importers[target.path] = []
                    queue.append(target)
                importers[target.path].append(file.path)
        reached = set(configuring)
        while configuring:
            for importer in importers[configuring.pop()]:
                if importer not in reached:
                    reached.add(importer)
                    configuring.append(importer)
        for files in registrars.values():
            files.sort(key=lambda f: f.display)
        return Reach(frozenset(importers), frozenset(reached), registrars)


@dataclass(frozen=True)
class Reach:
    """What importing does in the closure of a script."""

    files: frozenset[Path]
    configuring: frozenset[Path]
    registrars: Mapping[Path, list[SourceFile]]


class Frame:
    """One function call (or a module body) under interpretation."""

    def __init__(self, scope: Scope, module: Module, function: Function | None = None) -> None:
        self.scope = scope
        self.module = module
        self.function = function
        self.maybe_returned: list[Any] = []
        self.consumer: Callable[[Any], None] | None = None
        """What gets the values that a generator yields."""
        self.may_yield = function is not None and function.may_yield
        self.statement: Site | None = None
        self.receiver: Any = None


class Core:
    """State and primitive effects; the subclasses add expressions, calls and the library."""

    def __init__(self, project: Project, script: SourceFile) -> None:
        self.project = project
        self.script = script
        self.modules: dict[Path, Module] = {}
        self.frames: list[Frame] = []
        self.turns: list[int] = []
        self.guards: dict[int, int] = {}
        self.steps = 0
        self.limit = MAX_STEPS
        self.buffers = 0
        self.events = 0
        self.branches = 0
        self.active: list[Recording] = []
        self.waiting: list[Recording] = []
        """Recordings whose block has been left and whose backward pass has not run."""
        self.recordings: list[Recording] = []
        self.prelude: list[Event] = []
        """What ran while no tape was recording, since the last tape was entered."""
        self.no_backward: dict[Any, Site] = {}
        """Statements that turn backward code off, by module name; by None for all that follow."""
        self.held: dict[int, tuple[Any, list[tuple[Recording, Event, Any]]]] = {}
        """Structs and lists that recorded launches hold: a tape keeps the caller's own objects."""
        self.seeds: dict[int, Buffer] = {}
        self.adjoints_met = 0
        """Mentions of adjoints since the last backward pass through which one may have been seeded."""
        self.life = Life()
        self.called: set[Any] = set()
        self.kernels: list[Function] = []
        """Kernels in the order in which they were defined, those that functions define included."""
        self.skipped: dict[str, None] = {}
        self.summaries: dict[tuple[int, int], KernelSummary] = {}
        self._journals: list[dict[int, tuple[Any, Any]]] = []
        self._fields: list[dict[str, Any]] = []
        """The annotated names of the classes that are being made, innermost last."""

    # -- supplied by the other parts ----------------------------------------------------------

    def evaluate(self, node: Any) -> Any:
        raise NotImplementedError

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        raise NotImplementedError

    def call_function(self, function: Function, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        raise NotImplementedError

    def block(self, body: Any) -> Signal | None:
        raise NotImplementedError

    def get_attribute(self, owner: Any, name: str, node: Any = None) -> Any:
        raise NotImplementedError

    def drive(self, generator: Generator, consume: Callable[[Any], None]) -> None:
        raise NotImplementedError

    def import_module(self, file: SourceFile) -> Module | None:
        raise NotImplementedError

    # -- bookkeeping --------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def written_through(self, memory: Pointer, node: Any) -> None:
        raise NotImplementedError

    def lived(self, kind: str, node: Any, **what: Any) -> None:
        """Note a step in the life of a tape or of a gradient."""
        around: dict[str, Any] = {"guards": dict(self.guards), "path": self.call_path()}
        self.life.add(kind, self.site(node), self.frame.statement, **around, **what)

    def step(self) -> None:
        self.steps += 1
        if self.steps > self.limit:
            raise BudgetExceededError

    def site(self, node: Any) -> Site:
        return Site(self.frame.module.source, node)

    def call_path(self) -> tuple[Site, ...]:
        """The statements of the callers, outermost first."""
        return tuple(f.statement for f in self.frames[:-1] if f.statement is not None)

    def reset(self) -> None:
        """Forget where the interpretation is, so that another function can be entered."""
        self.frames.clear()
        self.turns.clear()
        self.guards.clear()
        self.active, self.waiting, self._journals = [], [], []
        self.prelude, self.seeds, self.adjoints_met = [], {}, 0
        self.life.forget()

    def skip(self, what: str) -> None:
        """Remember a call that could not be followed (shown with ``--verbose``)."""
        if len(self.skipped) < 200:
            self.skipped[what] = None

    # -- mutation, undone when a branch turns out not to be the only one ------------------------

    def touch(self, container: dict[Any, Any] | list[Any]) -> None:
        """Announce a change of a container, so that the branch being tried can be undone."""
        if self._journals:
            journal = self._journals[-1]
            if id(container) not in journal:
                journal[id(container)] = (container, container.copy())

    def put(self, container: dict[Any, Any], key: Any, value: Any) -> None:
        self.touch(container)
        container[key] = value

    def bind(self, name: str, value: Any, mark: Mark | None = None) -> None:
        """Bind a name in the current scope, honouring ``global`` and ``nonlocal``."""
        scope = self.frame.scope
        if name in scope.global_names:
            scope = self.frame.module.scope
        elif name in scope.outer_names and scope.parent is not None:
            scope = scope.parent.find(name) or scope
        if isinstance(value, Deferred) and not isinstance(scope.names, Names):
            value = value.get()
        self.put(scope.names, name, value)
        self.note(scope.bindings, name, mark)
        self.christen(value, name)

    def note(self, bindings: dict[Any, Mark], key: Any, mark: Mark | None) -> None:
        """Remember how a name or a slot came to its object, or that it is the first to hold it."""
        if mark is None:
            if key in bindings:
                self.touch(bindings)
                del bindings[key]
        else:
            self.put(bindings, key, mark)

    def christen(self, value: Any, name: str, depth: int = 0) -> None:
        """Give fresh buffers the name the user first gave them."""
        if isinstance(value, Buffer):
            if not value.name:
                value.name = name
        elif isinstance(value, Placeholder):
            if value.library and not value.christened:
                value.name, value.christened = name, True
        elif isinstance(value, (List, tuple)) and depth < 3:
            items = value.items if isinstance(value, List) else value
            for position, item in enumerate(items):
                if isinstance(item, (Buffer, List, tuple, Instance, Placeholder)):
                    self.christen(item, f"{name}[{position}]", depth + 1)
        elif isinstance(value, Dict) and depth < 3:
            for key, item in value.items.items():
                if isinstance(item, Buffer):
                    self.christen(item, f"{name}[{key!r}]", depth + 1)
        elif isinstance(value, Instance) and depth < 3:
            for key, item in value.attributes.items():
                if isinstance(item, Buffer) and (not item.name or item.name.startswith("self.")):
                    item.name = f"{name}.{key}" if not name.startswith("self") or not item.name else item.name

    # -- branches -----------------------------------------------------------------------------

    def arm(self, run: Callable[[], Signal | None], branch: int, number: int) -> tuple[Signal | None, Any]:
        """Run one arm of an undecided branch and take its effects back, remembering them."""
        self._journals.append({})
        lengths = [(r, len(r.events), len(r.changes)) for r in (*self.active, *self.waiting)]
        self.guards[branch] = number
        depth, turns = len(self.frames), len(self.turns)
        active, waiting = list(self.active), list(self.waiting)
        try:
            signal = run()
        finally:
            self.guards.pop(branch, None)
            del self.frames[depth:], self.turns[turns:]
            journal = self._journals.pop()
            after = {key: (box, box.copy()) for key, (box, _) in journal.items()}
            for box, before in journal.values():
                _restore(box, before)
            self.active, self.waiting = active, waiting
        if signal is not None:
            for recording, events, changes in lengths:
                if not recording.backwards:
                    del recording.events[events:]
                    del recording.changes[changes:]
        return signal, (journal, after)

    def undecided(
        self, then: Callable[[], Signal | None], other: Callable[[], Signal | None]
    ) -> Signal | None:
        """Both arms of a branch whose test is not known, merged where they come together."""
        self.branches += 1
        branch = self.branches
        first, (before1, after1) = self.arm(then, branch, 0)
        second, (before2, after2) = self.arm(other, branch, 1)
        if first is not None and second is not None:
            if first.kind == "raise":
                self._commit(after2)
                return second
            if second.kind == "raise" or first.kind == second.kind:
                self._commit(after1)
                if first.kind == "return" and second.kind == "return":
                    return Signal("return", merge(first.value, second.value))
                return first
            self._commit(after1)
            return first
        if first is not None:
            self._left_early(first)
            self._commit(after2)
            return None
        if second is not None:
            self._left_early(second)
            self._commit(after1)
            return None
        boxes = {key: box for key, (box, _) in (*before1.items(), *before2.items())}
        for key, box in boxes.items():
            one = after1[key][1] if key in after1 else box.copy()
            two = after2[key][1] if key in after2 else box.copy()
            self.touch(box)
            _restore(box, _merged(one, two))
        return None

    def _left_early(self, signal: Signal) -> None:
        if signal.kind == "return":
            self.frame.maybe_returned.append(signal.value)

    def _commit(self, after: dict[int, tuple[Any, Any]]) -> None:
        for box, state in after.values():
            self.touch(box)
            _restore(box, state)

    # -- buffers and events -------------------------------------------------------------------

    def new_buffer(self, node: Any, **properties: Any) -> Buffer:
        self.buffers += 1
        site = self.site(node)
        return Buffer(
            self.buffers,
            site,
            self.frame.statement or site,
            turns=tuple(self.turns),
            **properties,
        )

    def as_array(self, value: Any) -> Buffer | View | None:
        """The array a value is when it is used as one."""
        if isinstance(value, (Buffer, View)):
            return value
        if isinstance(value, Placeholder):
            if value.buffer is None:
                site = self.site(self.frame.module.source.tree)
                self.buffers += 1
                value.buffer = Buffer(
                    self.buffers, site, site, None, name=value.name, origin="parameter", element="float"
                )
            return value.buffer
        return None

    def emit(
        self,
        kind: str,
        effect: KernelSummary,
        bindings: Mapping[str, Binding],
        node: Any,
        arguments: Mapping[str, Any] | None = None,
        recorded: bool = True,
        host: Mapping[str, Carried] | None = None,
    ) -> None:
        """Append an event to the recordings that are open, and to those that wait for backward."""
        recording = [r for r in self.active if not r.backwards] if kind != "view" else []
        beside = self.waiting if kind != "view" else [*self.active, *self.waiting]
        changed = [r for r in beside if not r.backwards and len(r.changes) < _MAX_CHANGES]
        lists = [(r.events, False) for r in recording]
        if effect.writes:
            lists += [(r.changes, True) for r in changed]
        if not self.active and effect.writes and (kind in ("launch", "copy") or host):
            self.prelude = self.prelude[-_MAX_PRELUDE:]
            lists.append((self.prelude, False))
        if not lists:
            return
        site = self.site(node)
        statement = self.frame.statement or site
        for events, is_beside in lists:
            self.events += 1
            events.append(
                Event(
                    self.events,
                    kind,
                    effect,
                    bindings,
                    arguments or {},
                    site,
                    statement,
                    self.call_path(),
                    tuple(self.turns),
                    dict(self.guards),
                    recorded,
                    beside=is_beside,
                    other_tape=is_beside and bool(recording),
                    host=host or {},
                )
            )

    def hold(self, owner: Any, names: Any) -> None:
        """The launch that was just recorded holds ``owner``; ``names`` leads to its parameters."""
        held = self.held.setdefault(id(owner), (owner, []))[1]
        for recording in self.active:
            if recording.events and not recording.backwards:
                held.append((recording, recording.events[-1], names))

    def mutated(self, owner: Any, key: Any, old: Any, new: Any, target: Any) -> None:
        """A field or an element is assigned; recorded launches that hold the object see it."""
        if id(owner) not in self.held or old is new or not isinstance(old, (Buffer, View, Placeholder)):
            return
        for recording, event, names in self.held[id(owner)][1]:
            path = f"{names}.{key}" if isinstance(names, str) else names[key] if key < len(names) else ""
            if path and not recording.backwards and not recording.closed:
                site = self.site(target)
                text = self.frame.module.source.code(target)
                statement = self.frame.statement or site
                recording.mutations.append(Mutation(event, path, site, statement, text, dict(self.guards)))

    def wait(self, recording: Recording) -> None:
        """The block of a tape was left: from here on its values must stay as they are."""
        if not recording.backwards:
            self.waiting = [*self.waiting[-_MAX_WAITING:], recording]


def _restore(box: Any, state: Any) -> None:
    if isinstance(box, dict):
        box.clear()
        box.update(state)
    else:
        box[:] = state


def _merged(one: Any, two: Any) -> Any:
    if isinstance(one, dict):
        keys = dict.fromkeys((*one, *two))
        return {
            k: merge(one[k], two[k]) if k in one and k in two else one[k] if k in one else two[k]
            for k in keys
        }
    if len(one) != len(two):
        return one if len(one) > len(two) else two
    return [merge(a, b) for a, b in zip(one, two, strict=True)]


def merge(one: Any, two: Any) -> Any:
    """The value after a branch: what both arms agree on, or unknown."""
    if one is two or isinstance(one, Mark):
        return one
    if isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
        return tuple(merge(a, b) for a, b in zip(one, two, strict=True))
    plain = (int, float, str, bool, Range, View)
    if type(one) is type(two) and isinstance(one, plain) and one == two:
        return one
    return UNKNOWN


def is_known(value: Any) -> bool:
    """Whether a value is plain Python data."""
    return value is None or isinstance(value, (int, float, str, bool, bytes))


def has_unknown(value: Any) -> bool:
    """Whether a value, or a part of a tuple, is not plain known data."""
    if isinstance(value, tuple):
        return any(has_unknown(v) for v in value)
    return not is_known(value)


def truth(value: Any) -> bool | None:
    """Truth of an abstract value, or None if it cannot be told."""
    if isinstance(value, (Unknown, Placeholder)):
        return None
    if isinstance(value, List):
        return bool(value.items) or (None if not value.exact else False)
    if isinstance(value, Dict):
        return bool(value.items) or (None if not value.exact else False)
    if is_known(value) or isinstance(value, tuple):
        return bool(value)
    if isinstance(value, (Buffer, View, Tape, Instance, Function, Class, Module, Generator)):
        return True
    return None


def dotted(node: Any) -> str:
    """``a.b.c`` of a chain of names, or an empty string."""
    if isinstance(node, cst.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr.value}" if inner else ""
    return node.value if isinstance(node, cst.Name) else ""
