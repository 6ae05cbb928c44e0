"""The values of the abstract interpreter.

Immutable Python data (numbers, strings, None, tuples) stands for itself; everything with identity
is one object here per object of the program, so that aliasing is decided with ``is``. What cannot
be known is ``UNKNOWN``, and an unknown never becomes a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warplint.static.kernels.summary import Site

__all__ = [
    "MAX_ITEMS",
    "UNKNOWN",
    "UNKNOWN_LENGTH",
    "Adjoint",
    "ArrayType",
    "Bound",
    "Buffer",
    "Carried",
    "Class",
    "Command",
    "Deferred",
    "Dict",
    "External",
    "Function",
    "Generator",
    "HostGradient",
    "Instance",
    "List",
    "Mark",
    "Module",
    "Names",
    "Placeholder",
    "Pointer",
    "Range",
    "Scope",
    "Tape",
    "Unknown",
    "View",
    "base_of",
    "carried",
]


class Unknown:
    """The value nothing is known about (one instance)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()

MAX_ITEMS = 2000
"""Elements of a container that are followed one by one."""

UNKNOWN_LENGTH = 5
"""Elements a loop or comprehension is given when nothing tells how many there are."""


@dataclass(frozen=True)
class External:
    """Something from outside the checked tree, by its dotted name (``warp.zeros``, ``numpy``)."""

    name: str

    @property
    def last(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Mark:
    """Where a name got its object from: the statement that rebound it, the container slot."""

    statement: Site | None = None
    slot: tuple[Any, Any] | None = None


class Deferred:
    """A definition or an import that is carried out when somebody first asks for its name.

    A program uses a small part of what it imports, and the rest would cost most of the time.
    """

    __slots__ = ("_busy", "_make", "_value", "owner")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._value: Any = None
        self._busy = False
        self.owner: Class | None = None

    @property
    def done(self) -> bool:
        return self._make is None

    def get(self) -> Any:
        """The value; unknown to whoever asks while it is being made."""
        if self._make is None:
            return self._value
        if self._busy:
            return UNKNOWN
        self._busy = True
        try:
            value = self._make()
        finally:
            self._busy = False
        if isinstance(value, Function) and value.owner is None:
            value.owner = self.owner
        self._make, self._value = None, value
        return value


class Names(dict[Any, Any]):
    """The names of a module or of a class body; what is deferred is made when it is looked up."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        return value.get() if type(value) is Deferred else value

    def get(self, key: Any, default: Any = None) -> Any:
        value = super().get(key, default)
        return value.get() if type(value) is Deferred else value

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def raw(self, key: Any) -> Any:
        """What is there, made or not."""
        return super().__getitem__(key)


@dataclass(eq=False)
class Scope:
    """Names of a module, a class body or a function call."""

    names: dict[str, Any] = field(default_factory=dict)
    parent: Scope | None = None
    """The enclosing function scope or the module; class bodies are skipped as Python does."""
    global_names: set[str] = field(default_factory=set)
    outer_names: set[str] = field(default_factory=set)
    bindings: dict[str, Mark] = field(default_factory=dict)
    """How a name last came to an object that already had another name."""
    is_class: bool = False

    def find(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        return None

    @property
    def top(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(eq=False)
class Module:
    """A module of the checked tree, executed once per entry."""

    name: str
    source: Any
    """The parsed module (``syntax.SourceModule``)."""
    scope: Scope = field(default_factory=lambda: Scope(Names()))
    done: bool = False
    no_backward: Site | None = None
    """What turned the backward code of its kernels off: a statement on options or configuration."""


@dataclass(eq=False)
class Function:
    """A function of the checked tree; ``kind`` is host, func, kernel or native."""

    name: str
    node: Any
    module: Module
    scope: Scope
    kind: str = "host"
    defaults: dict[str, Any] = field(default_factory=dict)
    owner: Class | None = None
    binding: str = "method"
    """How class access binds it: method, static, class or property."""
    options: dict[str, Any] = field(default_factory=dict)
    """Keywords of the kernel decorator (``enable_backward`` …)."""
    attributes: dict[str, Any] = field(default_factory=dict)
    setter: Function | None = None
    may_yield: bool = False
    """The text around it has a ``yield`` somewhere."""


@dataclass(eq=False)
class Bound:
    """A method together with its object; ``name`` alone for methods of library objects."""

    receiver: Any
    name: str
    function: Function | None = None


@dataclass(eq=False)
class Class:
    """A class of the checked tree."""

    name: str
    node: Any
    module: Module
    bases: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    """Annotated names of the body, in order, with their annotation values."""
    is_struct: bool = False
    is_dataclass: bool = False
    is_enum: bool = False
    is_tuple: bool = False
    """A named tuple: its instances unpack into their fields."""

    def lookup(self, name: str) -> Any:
        """An attribute along the bases, or None."""
        for cls in self.linear():
            if name in cls.attributes:
                return cls.attributes[name]
        return None

    def has(self, name: str) -> bool:
        """Whether ``lookup`` finds something; that may be None."""
        return any(name in cls.attributes for cls in self.linear())

    def linear(self) -> list[Class]:
        """The class and its known bases, depth first (close enough to the real order)."""
        order: list[Class] = []
        stack: list[Any] = [self]
        while stack:
            cls = stack.pop(0)
            if isinstance(cls, Class) and cls not in order:
                order.append(cls)
                stack = [*cls.bases, *stack]
        return order

    def all_fields(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for cls in reversed(self.linear()):
            merged.update(cls.fields)
        return merged

    @property
    def has_unknown_base(self) -> bool:
        return any(not isinstance(b, Class) for cls in self.linear() for b in cls.bases)

    def derives_from(self, *names: str) -> bool:
        """Whether an external base has one of these dotted-name endings."""
        return any(
            isinstance(b, External) and b.name.endswith(names) for cls in self.linear() for b in cls.bases
        )


@dataclass(eq=False)
class Instance:
    """An object of a class of the tree, or of a library (``cls`` is then an ``External``)."""

    cls: Any
    attributes: dict[str, Any] = field(default_factory=dict)
    bindings: dict[str, Mark] = field(default_factory=dict)
    open: bool = False
    """Attributes that were never set may exist (library objects, unknown bases)."""


@dataclass(eq=False)
class List:
    """A list (or a set, or a deque). ``exact`` is False when it may hold more than is known."""

    items: list[Any] = field(default_factory=list)
    exact: bool = True
    bindings: dict[Any, Mark] = field(default_factory=dict)


@dataclass(eq=False)
class Generator:
    """A call of a generator function whose body has not run yet, or the values it gave."""

    function: Function
    scope: Scope
    receiver: Any = None
    values: List | None = None


@dataclass(eq=False)
class Dict:
    items: dict[Any, Any] = field(default_factory=dict)
    exact: bool = True


@dataclass(frozen=True)
class Range:
    """``range(...)`` with known or unknown bounds."""

    start: Any
    stop: Any
    step: Any


@dataclass(frozen=True)
class ArrayType:
    """``wp.array(dtype=...)`` as an annotation."""

    element: str = "float"
    """float, int, struct or unknown."""
    ndim: int | None = 1
    struct: Any = None


@dataclass(eq=False)
class Buffer:
    """One array of the program: one object per visit of an allocation."""

    number: int
    site: Site
    statement: Site
    requires_grad: bool | None = False
    element: str = "float"
    name: str = ""
    """As the user spelled the first name it got."""
    origin: str = ""
    """The call that made it: zeros, clone, parameter …"""
    ndim: int | None = None
    shape: tuple[Any, ...] | None = None
    explicit: bool = False
    """``requires_grad`` was written out in the allocation."""
    retains: bool = False
    """Allocated with ``retain_grad=True`` (or like an array that was)."""
    depth: int = 0
    turns: tuple[int, ...] = ()
    carried: Carried | None = None
    """The array whose values its first contents were made of, on the host."""
    consumed: bool = False
    """Somebody reads its gradient: an optimizer works on it."""

    def __repr__(self) -> str:
        return f"<{self.name or self.origin} #{self.number}>"


@dataclass(frozen=True)
class View:
    """A part of a buffer: slice, row, reshape. ``region`` is (lo, hi) of the first axis or None."""

    base: Buffer
    region: tuple[int, int] | None = None
    requires_grad: bool | None = None
    element: str = "float"
    certain: bool = True
    """False if the region could not be determined."""
    ndim: int | None = None


@dataclass(frozen=True)
class Adjoint:
    """``x.grad``."""

    base: Buffer


@dataclass(frozen=True)
class HostGradient:
    """``x.grad.numpy()``: on the CPU a view of the gradient's memory."""

    base: Buffer
    site: Site


@dataclass(frozen=True)
class Pointer:
    """``x.ptr``, or host memory that shares a buffer's storage (``x.numpy()``)."""

    base: Buffer
    read: Site | None = field(default=None, compare=False)
    """The call that handed the values to the host."""


@dataclass(frozen=True)
class Carried:
    """A number or an array of the host that was made of an array's values."""

    base: Buffer
    read: Site


@dataclass(eq=False)
class Command:
    """A launch that was prepared with ``record_cmd=True``."""

    given: dict[str, Any]


@dataclass(eq=False)
class Tape:
    """A ``wp.Tape`` object."""

    number: int
    site: Site


def base_of(value: Any) -> Buffer | None:
    """The buffer behind an array value, or None."""
    if isinstance(value, Buffer):
        return value
    if isinstance(value, View):
        return value.base
    return None


@dataclass(eq=False)
class Placeholder:
    """A parameter of an entry function, or an object of a simulation library: assumed distinct.

    Attributes and elements are placeholders of their own, made when first asked for; one that is
    used as an array becomes a buffer whose ``requires_grad`` is not known.
    """

    name: str
    library: str = ""
    """Dotted prefix of the library it comes from, empty for parameters."""
    children: dict[Any, Any] = field(default_factory=dict)
    buffer: Buffer | None = None
    christened: bool = False
    """It has the name the user first gave it."""


def carried(*values: Any) -> Any:
    """What a host computation with these operands is made of: an array's values, or unknown."""
    for value in values:
        if isinstance(value, Carried):
            return value
        if isinstance(value, Pointer) and value.read is not None:
            return Carried(value.base, value.read)
        if isinstance(value, (List, tuple)):
            found = carried(*(value.items if isinstance(value, List) else value))
            if found is not UNKNOWN:
                return found
    return UNKNOWN
