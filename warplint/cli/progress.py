"""Progress on stderr: a bar on a terminal, lines with `--verbose`, silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from warplint.report.lines import plain

_STAGES = {
    "scout": "looking",
    "measure": "measuring",
    "attribute": "finding the cause",
    "done": "done",
}


@contextmanager
def progress(*, quiet: bool, verbose: bool) -> Iterator[Callable[[Any], None]]:
    """Give a callable for the probe's events, and clean up the terminal after it."""
    if quiet:
        yield lambda event: None
    elif verbose:
        yield _line
    elif sys.stderr.isatty():
        with _bar() as update:
            yield update
    else:
        yield lambda event: None


def _line(event: Any) -> None:
    words = _STAGES.get(event.stage, event.stage)
    print(
        f"warplint: {event.done}/{event.total} {plain(event.program)}: {words}", file=sys.stderr, flush=True
    )


@contextmanager
def _bar() -> Iterator[Callable[[Any], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("running"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("starting", total=None)

        def update(event: Any) -> None:
            words = _STAGES.get(event.stage, event.stage)
            bar.update(
                task, description=f"{event.program}: {words}", completed=event.done, total=event.total or None
            )

        yield update
