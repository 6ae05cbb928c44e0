"""`warplint graph`: the dataflow graph of each tape scope, for people to look at."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from warplint.cli.errors import CallError
from warplint.cli.output import save, write

GRAPH_FORMATS = ("dot", "svg", "mermaid", "json")


def graph(program: str, format: str, output_file: str | None, scope: int | None, turns: int) -> int:
    """Draw the scopes of a program; nothing is executed."""
    text = _drawn(Path(program), format, scope, turns)
    if output_file is None or output_file == "-":
        write(text)
    else:
        save(Path(output_file), text)
    return 0


def _drawn(program: Path, format: str, scope: int | None, turns: int) -> str:
    from warplint.source.discovery import SourceFile, display_path

    root = Path.cwd()
    path = Path(os.path.abspath(program))
    if path.is_dir():
        raise CallError(f"{program} is a directory; name a program, which is a Python file")
    if not path.is_file():
        raise CallError(f"no such program: {program}")
    file = SourceFile(path, display_path(path, root))
    if file.not_python:
        raise CallError(f"{program} cannot be read as Python: {file.not_python}")
    # Graphviz is looked for first: the drawing takes seconds.
    graphviz = _graphviz() if format == "svg" else None
    from warplint.static.formats import render
    from warplint.static.picture import draw
    from warplint.static.run import scope_graphs

    graphs = scope_graphs(file, root)
    if not graphs:
        raise CallError(f"{program}: no tape scope was reached (checked code is read, not run)")
    if scope is not None:
        if scope > len(graphs):
            raise CallError(f"--scope: {program} has {len(graphs)} tape scope{'s' * (len(graphs) > 1)}")
        graphs = graphs[scope - 1 : scope]
    pictures = [draw(g, turns) for g in graphs]
    text = render(pictures, file.display, "dot" if format == "svg" else format)
    return _svg(text, graphviz) if graphviz is not None else text


def _graphviz() -> str:
    found = shutil.which("dot")
    if found is None:
        raise CallError(
            "--format svg needs Graphviz, whose `dot` is not on the PATH; --format dot writes its input"
        )
    return found


def _svg(text: str, graphviz: str) -> str:
    try:
        done = subprocess.run(
            [graphviz, "-Tsvg"], input=text, capture_output=True, text=True, encoding="utf-8", timeout=120
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CallError(f"Graphviz failed: {error}") from None
    if done.returncode:
        raise CallError(f"Graphviz failed: {' '.join(done.stderr.split()) or done.returncode}")
    return done.stdout
