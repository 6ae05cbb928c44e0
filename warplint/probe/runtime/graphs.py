"""Captured graphs: a replay runs the captured operations again, through the hooks.

While a graph is captured nothing executes, on any device: operations are only noted. Warp's own
replay runs them in native code, where no hook sees anything. Here a graph is the list of the
hooked calls in its body, and a replay makes them again, each under the call site it was captured
at. A tape that is recorded in the body is recorded afresh by every replay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import warp
from warp._src import context

from . import arrays

_CALLABLES = ("capture_if", "capture_while")


class Captured(context.Graph):
    """Stands for the graph of one capture; ``device`` is all that user code may ask of it."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.body: list[tuple[tuple, Callable[[], Any]]] = []
        self.tapes: dict[int, tuple[Any, int]] = {}

    def __del__(self) -> None:
        """Nothing native to free."""

    def note(self, stack: tuple, call: Callable[[], Any]) -> None:
        self.body.append((stack, call))

    def note_tape(self, tape: Any) -> None:
        """A tape that the body enters: replays begin it where it stood at the capture."""
        self.tapes.setdefault(id(tape), (tape, len(tape.launches)))

    def note_birth(self, array: Any) -> None:
        """Allocations set their content when they run, so they do in a replay."""
        if getattr(array, "deleter", None) is None or not array.ptr:
            return
        data = arrays.content(array)

        def again() -> None:
            arrays.put(array, data)
            if array.requires_grad and array.grad is not None:
                arrays.memory(array.grad)[...] = 0

        self.body.append(((), again))

    def replay(self, stream: Any) -> None:
        for tape, length in self.tapes.values():
            if len(tape.launches) > length:
                stream.rerecorded(tape)
                del tape.launches[length:]
        for stack, call in self.body:
            stream.replaying = stack or None
            try:
                call()
            finally:
                stream.replaying = None


def hook(stream: Any) -> None:
    """Replaces capture and replay in Warp by their counterparts here."""
    if not hasattr(context, "capture_begin"):
        return

    def capture_begin(device: Any = None, stream_: Any = None, *args: Any, **kwargs: Any) -> Any:
        if stream.capture is not None:
            raise RuntimeError("Graph capture already in progress")
        given = kwargs.get("stream", stream_)
        where = given.device if given is not None else context.runtime.get_device(device)
        stream.capture = Captured(where)

    def capture_end(*args: Any, **kwargs: Any) -> Any:
        graph, stream.capture = stream.capture, None
        if graph is None:
            raise RuntimeError("Graph capture is not active")
        return graph

    replay = context.capture_launch

    @functools.wraps(replay)
    def capture_launch(graph: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(graph, Captured):
            if not stream.noted(lambda: graph.replay(stream)):
                graph.replay(stream)
            return None
        # A graph loaded from a file: nothing it does can be seen, so it is counted and reported.
        stream.graph_replays += 1
        return replay(graph, *args, **kwargs)

    _put("capture_begin", capture_begin)
    _put("capture_end", capture_end)
    _put("capture_launch", capture_launch)
    for name in _CALLABLES:
        original = getattr(context, name, None)
        if original is not None:
            _put(name, _deferred(stream, original))
    _defer_record_func(stream)


def _put(name: str, function: Any) -> None:
    functools.update_wrapper(function, getattr(context, name))
    for module in (warp, context):
        if hasattr(module, name):
            setattr(module, name, function)


def _deferred(stream: Any, original: Any) -> Any:
    def branch(*args: Any, **kwargs: Any) -> Any:
        if stream.noted(lambda: original(*args, **kwargs)):
            return None
        return original(*args, **kwargs)

    return branch


def _defer_record_func(stream: Any) -> None:
    tape_class = warp.Tape
    original = tape_class.record_func

    @functools.wraps(original)
    def record_func(self: Any, *args: Any, **kwargs: Any) -> Any:
        if stream.noted(lambda: original(self, *args, **kwargs)):
            return None
        return original(self, *args, **kwargs)

    tape_class.record_func = record_func
