"""Recorded kernels without backward code: ``enable_backward=False``."""

from __future__ import annotations

import functools
from typing import Any

import warp
from warp._src import context

from ..hooks import Event
from .activity import is_active
from .base import CounterfactualRun, Kind


class BackwardDisabled(Kind):
    """Compiles the selected kernels with backward code from the measured episode on.

    One switch (a kernel's decorator, a module's options, the configuration) is one cause,
    however many kernels it turns off.
    """

    NAME = "backward-disabled"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: dict[tuple, dict[str, Any]] = {}
        self.switched: dict[str, tuple[str, tuple]] = {}
        """Modules without backward code: what turned it off ("module", "global") and where."""
        self.configured: tuple = ()
        """Where ``wp.config.enable_backward`` was last turned off."""
        self.enabled: set[int] = set()

    def prepare(self) -> None:
        self.watch_configuration()
        self.watch_modules()

    def watch_configuration(self) -> None:
        kind = self
        given = type(warp.config)

        class Watched(given):  # type: ignore[misc, valid-type]
            def __setattr__(self, name: str, value: Any) -> None:
                if name == "enable_backward" and not value:
                    kind.configured = kind.stream.sites.stack(2)
                super().__setattr__(name, value)

        warp.config.__class__ = Watched

    def watch_modules(self) -> None:
        """Notices modules born without backward code, and those whose options turn it off."""
        module = context.Module
        initialise, modified = module.__init__, module.mark_modified

        @functools.wraps(initialise)
        def __init__(made: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            initialise(made, *args, **kwargs)
            if not made.options["enable_backward"]:
                self.switched[made.name] = ("global", self.configured)

        @functools.wraps(modified)
        def mark_modified(changed: Any) -> Any:
            if not changed.options["enable_backward"]:
                self.switched.setdefault(changed.name, ("module", self.stream.sites.stack(2)))
            return modified(changed)

        module.__init__, module.mark_modified = __init__, mark_modified

    def before(self, event: Event) -> None:
        if not self.run.started or event.kind != "launch" or not event.recorded:
            return
        kernel = event.details["object"]
        if has_backward(kernel):
            return
        active = self.run.activity.reads_active(event)
        cause = self.describe(kernel, event)
        if active:
            self.note(cause, event)
        if self.removes(cause["key"]) and id(kernel) not in self.enabled:
            self.enabled.add(id(kernel))
            _enable(kernel)

    def describe(self, kernel: Any, event: Event) -> dict[str, Any]:
        sites = self.stream.sites
        file = sites.name(kernel.adj.filename)
        if file is None:
            how, stack = "library", event.stack
        elif (kernel.options or {}).get("enable_backward") is False:
            how, stack = "kernel", ()
        else:
            how, stack = self.switched.get(kernel.module.name, ("module", ()))
        stack = stack or ((file, kernel.adj.fun_lineno, kernel.key),)
        key = (self.NAME, how, *stack[0][:2])
        return {"key": key, "how": how, "stack": stack, "kernels": [], "launch": None}

    def note(self, cause: dict[str, Any], event: Event) -> None:
        found = self.causes.setdefault(cause["key"], cause)
        if event.details["kernel"] not in found["kernels"]:
            found["kernels"].append(event.details["kernel"])
        if found["launch"] is None and any(is_active(a) for _, a in event.arrays):
            found["launch"] = {"stack": event.stack, "kernel": event.details["kernel"]}

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())


def has_backward(kernel: Any) -> bool:
    option = (kernel.options or {}).get("enable_backward")
    return bool(kernel.module.options["enable_backward"] if option is None else option)


def _enable(kernel: Any) -> None:
    """The kernel's own option has precedence; where it is not part of a module's hash yet (Warp
    1.13) an option of the module makes the difference."""
    for one in (kernel, *getattr(kernel, "overloads", {}).values()):
        one.options = {**(one.options or {}), "enable_backward": True}
    kernel.module.options["with_backward"] = f"{kernel.module.options.get('with_backward', '')}{kernel.key} "
    kernel.module.mark_modified()
