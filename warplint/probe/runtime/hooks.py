"""Warp's operations as a stream of numbered events with call sites.

An event is named by (file, line, kind, occurrence): the n-th time this line did this. A
deterministic program names its events alike in every run and fork, which is what makes
"perturb there, stop here" possible; a perturbation may add or drop events elsewhere without
moving the names.

What each hook sees is Warp's own structure (measured on 1.13 to 1.19): ``warp.launch`` and
``context.launch`` are one object under two names, copies come through ``context.copy``, and
everything else through methods of ``warp.array`` and ``Tape``.
"""

from __future__ import annotations

import functools
import inspect
import os
import traceback
from collections.abc import Callable
from typing import Any

import warp
from warp._src import context, utils
from warp._src import types as wptypes

from . import arrays, graphs, library, structures
from .inputs import Inputs
from .loading import time_compilation
from .sites import Sites


class Event:
    """One operation of the user's program.

    ``arrays`` are (label, array) pairs of everything handed in; ``target`` is the array
    written (copy, assign, zero, fill) or read (read), ``source`` the array copied from.
    """

    __slots__ = ("arrays", "details", "kind", "name", "recorded", "source", "stack", "tape", "target")

    def __init__(self, kind: str, stack: tuple) -> None:
        self.kind = kind
        self.stack = stack
        self.name: tuple = ()
        self.arrays: list[tuple[str, Any]] = []
        self.target: Any = None
        self.source: Any = None
        self.tape: Any = None
        self.recorded = False
        self.details: dict[str, Any] = {}


class Observer:
    """Sees every event before and after it happens; the base class sees nothing."""

    def before(self, event: Event) -> None: ...

    def after(self, event: Event) -> None: ...

    def born(self, array: Any) -> None: ...

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Runs one adjoint launch of a tape's backward pass."""
        return run()

    def read_result(self, event: Event, result: Any) -> Any:
        """May replace what a host read hands to the user (a copy instead of a live view)."""
        return result

    def finished(self, error: BaseException | None) -> None:
        """The program ended (or raised)."""


class Stream:
    """The numbered events of this process and who observes them."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.births = arrays.Births()
        self.observer: Observer = Observer()
        self.depth = 0
        self.in_backward = False
        self.total = 0
        self.counts: dict[tuple, int] = {}
        self.forced_gradients: frozenset = frozenset()
        self.recordings = 0
        self.graph_replays = 0
        self.capture: graphs.Captured | None = None
        """The graph whose body is being captured: nothing runs meanwhile."""
        self.replaying: tuple | None = None
        """Where the operation of a replayed graph was captured."""
        self.devices: Any = None
        self.inputs = Inputs()
        self.running: set[tuple] = set()
        """Families of arrays that the scout saw carried from pass to pass off the tape."""
        self.lagging: set[tuple] = set()
        """And of those it saw used as they were copied from a parameter in an earlier pass, with the
        (file, line) of such copies through the host."""
        self.stderr: Any = None
        self.allocating = 0
        self.seeded = False
        """Whether some backward call has used a seed array up."""
        self.current: Event | None = None
        """The operation that is being carried out."""

    def noted(self, call: Callable[[], Any]) -> bool:
        """Keeps a call for the replays of a graph that is being captured."""
        if self.capture is None or self.depth:
            return False
        self.capture.note(self.sites.stack(3), call)
        return True

    def rerecorded(self, tape: Any) -> None:
        """A replay records this tape afresh."""
        event = self.event("tape-reset")
        event.details["tape"] = tape
        self.observer.before(event)
        self.observer.after(event)

    def event(self, kind: str) -> Event:
        stack = self.replaying or self.sites.stack(3)
        event = Event(kind, stack)
        file, line = stack[0][:2] if stack else ("?", 0)
        key = (file, line, kind)
        occurrence = self.counts.get(key, 0)
        self.counts[key] = occurrence + 1
        event.name = (*key, occurrence)
        event.tape = context.runtime.tape
        self.total += 1
        return event

    def run(self, event: Event, call: Callable[[], Any]) -> Any:
        _keep_scalars(event)
        if self.seeded and event.kind != "backward":
            for array in (event.target, *(a for _, a in event.arrays)):
                arrays.forget_seed(array)
        _watched(self.observer.before, event)
        self.current = event
        self.depth += 1
        try:
            result = call()
        finally:
            self.depth -= 1
        _mark_scalars(event)
        _watched(self.observer.after, event)
        return result


class ObserverFault(BaseException):
    """The probe itself failed while it watched an operation: no fault of the program, which must
    not catch it either."""


def _watched(notice: Callable[[Event], None], event: Event) -> None:
    try:
        notice(event)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        text = f"warplint failed to watch a {event.kind}: {type(error).__name__}: {error} ({place})"
        raise ObserverFault(text) from error


def _keep_scalars(event: Event) -> None:
    """A loss may be reset between its last launch and the backward call: keep what it was."""
    if event.recorded:
        return
    if event.kind in ("zero", "fill", "assign", "copy"):
        targets = [event.target]
    elif event.kind in ("launch", "reduce"):
        targets = [array for _, array in event.arrays]
    else:
        return
    for array in targets:
        arrays.keep_recorded(array)


def _mark_scalars(event: Event) -> None:
    if not event.recorded:
        return
    for array in [a for _, a in event.arrays] + ([event.target] if event.target is not None else []):
        arrays.mark_recorded(array)


def install(sites: Sites) -> Stream:
    """Patches Warp in this process and returns the stream; call before user code imports it."""
    stream = Stream(sites)
    arrays.raw_interface = wptypes.array.__array_interface__.fget
    _hook_births(stream)
    _hook_launch(stream)
    _hook_copy(stream)
    _hook_array_methods(stream)
    _hook_reductions(stream)
    _hook_tape(stream)
    structures.hook(stream)
    library.hook(stream)
    graphs.hook(stream)
    time_compilation()
    return stream


def _replace_everywhere(original: Any, replacement: Any, name: str) -> None:
    for module in (warp, context):
        if getattr(module, name, None) is original:
            setattr(module, name, replacement)


# -- births ------------------------------------------------------------------------------


def _hook_births(stream: Stream) -> None:
    array = wptypes.array
    initialise = array.__init__

    @functools.wraps(initialise)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        initialise(self, *args, **kwargs)
        if self.device is None or stream.allocating:  # an annotation; a gradient of another array
            return
        if kwargs.get("data") is not None or (args and args[0] is not None):
            self._warplint_from_host = True
        if kwargs.get("ptr") is not None:
            self._warplint_alias = True  # memory of another owner, until a view base is set
        record = stream.births.add(self, sites.stack(2))
        if stream.forced_gradients and not self.requires_grad and record.family in stream.forced_gradients:
            self.requires_grad = True
        stream.observer.born(self)
        if stream.capture is not None:
            stream.capture.note_birth(self)

    sites = stream.sites
    array.__init__ = __init__

    allocate = array._alloc_grad

    @functools.wraps(allocate)
    def _alloc_grad(self: Any) -> None:
        stream.allocating += 1
        try:
            allocate(self)
        finally:
            stream.allocating -= 1
        arrays.adopt_gradient(self, self._grad)

    array._alloc_grad = _alloc_grad

    prop = array.grad

    def set_grad(self: Any, gradient: Any) -> None:
        prop.fset(self, gradient)
        if gradient is not None and not arrays.is_part_of_gradient(gradient):
            arrays.count_reset(gradient)
        arrays.adopt_gradient(self, gradient)

    array.grad = property(prop.fget, set_grad, prop.fdel, prop.__doc__)


# -- launches ----------------------------------------------------------------------------


def _hook_launch(stream: Stream) -> None:
    original = context.launch
    bind = _binder(original)

    @functools.wraps(original)
    def launch(*args: Any, **kwargs: Any) -> Any:
        if stream.depth:
            if stream.in_backward and kwargs.get("adjoint"):
                return stream.observer.around_adjoint(kwargs, lambda: original(*args, **kwargs))
            return original(*args, **kwargs)
        given = bind(args, kwargs)
        if given is None:
            return original(*args, **kwargs)  # raises what a wrong call raises
        if not isinstance(given["kernel"], context.Kernel):
            return original(*args, **kwargs)
        if given.get("record_cmd"):
            command = original(*args, **kwargs)
            command._warplint_call = given
            return command
        if stream.noted(lambda: launch(*args, **kwargs)):
            return None
        adjoint = bool(given["adjoint"])
        event = stream.event("adjoint" if adjoint else "launch")
        tape = event.tape
        event.arrays = arrays.arguments(given["kernel"], given["inputs"], given["outputs"])
        event.recorded = tape is not None and bool(given["record_tape"]) and not adjoint
        event.details = {
            "kernel": getattr(given["kernel"].func, "__name__", given["kernel"].key),
            "object": given["kernel"],
            "kernel_file": stream.sites.name(given["kernel"].adj.filename) or given["kernel"].adj.filename,
            "kernel_line": given["kernel"].adj.fun_lineno,
            "inputs": given["inputs"],
            "outputs": given["outputs"],
            "call": given,
            "unrecorded": "record_tape=False",
        }
        if adjoint:
            event.details["adj_inputs"] = given["adj_inputs"]
            event.details["adj_outputs"] = given["adj_outputs"]
        before = len(tape.launches) if event.recorded else 0
        result = stream.run(event, lambda: original(*args, **kwargs))
        if event.recorded and len(tape.launches) > before:
            _name_the_caller(tape.launches[-1], event)
        return result

    _replace_everywhere(original, launch, "launch")

    _hook_commands(stream)


def _hook_commands(stream: Stream) -> None:
    """Launches that were prepared with ``record_cmd=True``: no tape ever sees them."""
    command = context.Launch
    run_command, set_parameter = command.launch, command.set_param_at_index

    @functools.wraps(run_command)
    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = getattr(self, "_warplint_call", None)
        if stream.depth or given is None:
            return run_command(self, *args, **kwargs)
        if stream.noted(lambda: launch(self, *args, **kwargs)):
            return None
        event = stream.event("launch")
        shape = tuple(self.bounds.shape)
        dim = shape[: getattr(self.bounds, "ndim", len(shape))]
        call = {**given, "dim": dim, "inputs": list(given["inputs"]), "outputs": list(given["outputs"])}
        event.arrays = arrays.arguments(self.kernel, call["inputs"], call["outputs"])
        event.details = {
            "kernel": self.kernel.key,
            "kernel_file": stream.sites.name(self.kernel.adj.filename) or self.kernel.adj.filename,
            "kernel_line": self.kernel.adj.fun_lineno,
            "inputs": call["inputs"],
            "outputs": call["outputs"],
            "object": self.kernel,
            "call": call,
            "unrecorded": "Launch.launch()",
        }
        return stream.run(event, lambda: run_command(self, *args, **kwargs))

    @functools.wraps(set_parameter)
    def set_param_at_index(self: Any, index: int, value: Any, *args: Any, **kwargs: Any) -> Any:
        given = getattr(self, "_warplint_call", None)
        if given is not None and not (args or kwargs):
            inputs = list(given["inputs"])
            values = [*inputs, *given["outputs"]]
            values[index] = value
            self._warplint_call = {**given, "inputs": values[: len(inputs)], "outputs": values[len(inputs) :]}
        return set_parameter(self, index, value, *args, **kwargs)

    command.launch, command.set_param_at_index = launch, set_param_at_index


def _binder(function: Any) -> Callable[[tuple, dict[str, Any]], dict[str, Any] | None]:
    """Maps call arguments to parameter names; None for a call that does not fit.

    ``inspect.Signature.bind`` takes as long as a launch itself.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    required = set(names) - set(defaults)

    def bind(args: tuple, kwargs: dict[str, Any]) -> dict[str, Any] | None:
        given = dict(zip(names, args))
        if len(args) > len(names) or not given.keys().isdisjoint(kwargs):
            return None
        given.update(kwargs)
        if not required <= given.keys():
            return None
        bound = {**defaults, **given}
        return bound if len(bound) == len(names) else None

    return bind


def _name_the_caller(record: Any, event: Event) -> None:
    # Warp notes the direct caller, which is the hook: put the user's line back.
    metadata = record[7] if isinstance(record, list) and len(record) > 7 else None
    if isinstance(metadata, dict) and event.stack and "caller" in metadata:
        file, line, function = event.stack[0]
        metadata["caller"] = {"file": file, "lineno": line, "func": function}


# -- copies and array methods ------------------------------------------------------------


def _hook_copy(stream: Stream) -> None:
    original = context.copy

    @functools.wraps(original)
    def copy(dest: Any, src: Any, *args: Any, **kwargs: Any) -> Any:
        if stream.depth or not (wptypes.is_array(dest) and wptypes.is_array(src)):
            return original(dest, src, *args, **kwargs)
        if stream.noted(lambda: copy(dest, src, *args, **kwargs)):
            return None
        event = stream.event("copy")
        _describe_copy(event, dest, src)
        names = ("dest_offset", "src_offset", "count")
        part = (*args[:3], *(kwargs.get(n, 0) for n in names[len(args) :]))
        event.details["part"] = part
        return stream.run(event, lambda: original(dest, src, *args, **kwargs))

    _replace_everywhere(original, copy, "copy")


def _describe_copy(event: Event, dest: Any, src: Any) -> None:
    if any(isinstance(array, wptypes.indexedarray) for array in (dest, src)):
        event.details["indexed"] = (dest, src)  # no tape records it
        event.target, event.source = arrays.indexed(dest)[0], arrays.indexed(src)[0]
        return
    event.target, event.source = dest, src
    event.recorded = (
        event.tape is not None
        and getattr(dest, "grad", None) is not None
        and getattr(src, "grad", None) is not None
    )


def _hook_array_methods(stream: Stream) -> None:
    array = wptypes.array

    def wrap_write(name: str, kind: str) -> None:
        original = getattr(array, name)

        @functools.wraps(original)
        def write(self: Any, *args: Any, **kwargs: Any) -> Any:
            if stream.noted(lambda: write(self, *args, **kwargs)):
                return self if name == "assign" else None
            if stream.depth:
                arrays.count_reset(self, stream.current)
                return original(self, *args, **kwargs)
            event = stream.event(kind)
            arrays.count_reset(self, event)
            event.target = self
            if kind == "assign" and args and wptypes.is_array(args[0]):
                _describe_copy(event, self, args[0])
            return stream.run(event, lambda: original(self, *args, **kwargs))

        setattr(array, name, write)

    wrap_write("zero_", "zero")
    wrap_write("fill_", "fill")
    wrap_write("assign", "assign")

    numpy_method = array.numpy

    @functools.wraps(numpy_method)
    def numpy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if stream.depth:
            return numpy_method(self, *args, **kwargs)
        event = stream.event("read")
        event.target = self
        result = stream.run(event, lambda: numpy_method(self, *args, **kwargs))
        return stream.observer.read_result(event, result)

    array.numpy = numpy

    def interface(self: Any) -> Any:
        if stream.depth or self.device is None:
            return arrays.raw_interface(self)
        event = stream.event("read")
        event.target = self
        given = stream.run(event, lambda: arrays.raw_interface(self))
        view = arrays.memory(self)
        result = stream.observer.read_result(event, view)
        if result is view:
            return given
        self._warplint_handed_out = result  # its memory must outlive this call
        return result.__array_interface__

    array.__array_interface__ = property(interface)

    for name in ("to_torch", "to_jax", "to_dlpack", "to_paddle"):
        original = getattr(warp, name, None)
        if original is not None:
            setattr(warp, name, _export(stream, original))
    for name in ("from_torch", "from_jax", "from_dlpack", "from_paddle"):
        original = getattr(warp, name, None)
        if original is not None:
            setattr(warp, name, _import(original))


def _hook_reductions(stream: Stream) -> None:
    """Sums and scans of ``warp.utils``: native calls, which no tape sees."""
    for name in ("array_sum", "array_inner", "array_scan"):
        original = getattr(utils, name)
        replacement = _reduction(stream, original)
        for module in (utils, warp.utils):
            setattr(module, name, replacement)


def _reduction(stream: Stream, original: Any) -> Any:
    bind, name = _binder(original), original.__name__

    @functools.wraps(original)
    def reduction(*args: Any, **kwargs: Any) -> Any:
        given = bind(args, kwargs)
        if stream.depth or given is None:
            return original(*args, **kwargs)
        if stream.noted(lambda: reduction(*args, **kwargs)):
            return given.get("out")
        event = stream.event("reduce")
        event.arrays = [(label, a) for label, a in given.items() if arrays.is_array(a) and a.ptr]
        event.details = {"kernel": name, "call": given, "unrecorded": f"wp.utils.{name}()"}
        result = stream.run(event, lambda: original(*args, **kwargs))
        return stream.observer.read_result(event, result)

    return reduction


def _export(stream: Stream, original: Any) -> Any:
    @functools.wraps(original)
    def export(a: Any, *args: Any, **kwargs: Any) -> Any:
        if stream.depth or not arrays.is_array(a):
            return original(a, *args, **kwargs)
        event = stream.event("export")
        event.target = a
        arrays.share(a)
        return stream.run(event, lambda: original(a, *args, **kwargs))

    return export


def _import(original: Any) -> Any:
    @functools.wraps(original)
    def from_other(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if arrays.is_array(result):
            arrays.share(result)
        return result

    return from_other


# -- tapes -------------------------------------------------------------------------------


def _hook_tape(stream: Stream) -> None:
    tape_class = warp.Tape

    def wrap(name: str, kind: str) -> None:
        original = getattr(tape_class, name)

        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if stream.depth:
                return original(self, *args, **kwargs)
            if stream.noted(lambda: method(self, *args, **kwargs)):
                if kind == "tape-enter" and stream.capture is not None:
                    stream.capture.note_tape(self)
                return self if kind == "tape-enter" else None
            event = stream.event(kind)
            event.details["tape"] = self
            if kind == "tape-enter":
                # launches recorded in an earlier session of a tape stay on it until reset()
                self._warplint_session = getattr(self, "_warplint_session", 0) + 1
                stream.recordings += 1
                self._warplint_recording = stream.recordings
            return stream.run(event, lambda: original(self, *args, **kwargs))

        setattr(tape_class, name, method)

    initialise = tape_class.__init__

    @functools.wraps(initialise)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        initialise(self, *args, **kwargs)
        self._warplint_born = stream.sites.stack(2)

    tape_class.__init__ = __init__

    wrap("__enter__", "tape-enter")
    wrap("__exit__", "tape-exit")
    wrap("zero", "tape-zero")
    wrap("reset", "tape-reset")

    original = tape_class.backward

    @functools.wraps(original)
    def backward(self: Any, loss: Any = None, grads: Any = None) -> Any:
        if stream.depth:
            return original(self, loss, grads)
        if stream.noted(lambda: backward(self, loss, grads)):
            return None
        event = stream.event("backward")
        event.details.update(tape=self, loss=loss, grads=grads)

        def call() -> Any:
            stream.in_backward = True
            seeds = [
                (g, arrays.values(g), arrays.content(g)) for g in _seeds(event) if arrays.used_up(g) is None
            ]
            try:
                return original(self, loss, grads)
            finally:
                stream.in_backward = False
                arrays.note_adjoints(self.gradients.values())
                for gradient, given, data in seeds:
                    stream.seeded = arrays.note_seed(gradient, given, data) or stream.seeded

        return stream.run(event, call)

    tape_class.backward = backward


def _seeds(event: Event) -> list[Any]:
    """The arrays that user code has filled for a backward call to begin with."""
    if event.details["loss"] is not None:
        return []
    grads = event.details["grads"]
    if grads:
        return [g for g in grads.values() if arrays.is_array(g) and g.ptr and arrays.is_float(g)]
    found: dict[int, Any] = {}
    for launch in event.details["tape"].launches:
        for _, array in arrays.walk([*launch[3], *launch[4]]) if not callable(launch) else ():
            gradient = array.grad
            if gradient is None or not gradient.ptr or id(gradient) in found:
                continue
            if arrays.given_by_user(gradient) and arrays.memory(gradient).any():
                found[id(gradient)] = gradient
    return list(found.values())
