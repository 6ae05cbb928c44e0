"""Evidence that lasts: a small script for each confirmed result that prints its numbers again."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import warplint
from warplint.model import Program, Result
from warplint.probe import ProbeSettings
from warplint.probe.facts import Paths
from warplint.probe.interpreter import Interpreter
from warplint.probe.session import RUNTIME, program_spec

DIRECTORY = ".warplint/evidence"

_SCRIPT = '''"""Evidence for {rule} at {place}: {message}

Runs {program} as it stands, a few iterations and from several forks of the
same process, and prints autodiff against finite differences again, before and after the cause
is taken away. It runs your program where it lies, outside warplint's sandbox.

Written by warplint {version}; run it with any Python: python {name}
"""

import importlib.util
import json
import os
import subprocess
import sys

INTERPRETER = {interpreter!r}
RUNTIME = {runtime!r}

SPEC = json.loads(r"""
{spec}
""")


def runtime() -> str:
    """The installed warplint's runtime, or the one that wrote this script."""
    found = importlib.util.find_spec("warplint")
    if found is not None and found.origin is not None:
        here = os.path.join(os.path.dirname(found.origin), "probe", "runtime")
        if os.path.isdir(here):
            return here
    return RUNTIME


if __name__ == "__main__":
    command = [INTERPRETER, os.path.join(runtime(), "replay.py")]
    fixed = {{"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}}
    environment = {{**os.environ, **fixed, "MPLBACKEND": "Agg", **SPEC["env"]}}
    done = subprocess.run(command, input=json.dumps(SPEC).encode(), env=environment, check=False)
    sys.exit(done.returncode)
'''


def write(
    result: Result,
    replay: dict[str, Any],
    program: Program,
    interpreter: Interpreter,
    paths: Paths,
    settings: ProbeSettings,
) -> str:
    """Writes the script and returns its path as displayed; raises OSError where it cannot."""
    entry = paths.absolute(program.file)
    directory = paths.absolute(program.working_directory)
    spec = {
        **program_spec(program, settings, entry, directory),
        "root": str(paths.project),
        "seconds": settings.timeout,
        "env": dict(settings.env),
        **replay,
    }
    place = f"{result.location.file}:{result.location.line}"
    digest = hashlib.sha256(f"{program.label} {place}".encode()).hexdigest()[:8]
    stem = re.sub(
        r"[^A-Za-z0-9]+", "-", f"{result.rule}-{Path(result.location.file).stem}-{result.location.line}"
    )
    folder = settings.root / DIRECTORY
    name = f"{stem}-{digest}.py"
    text = _SCRIPT.format(
        rule=result.rule,
        place=place,
        message=result.message.replace("\\", "\\\\").replace('"', "'"),
        program=program.label,
        version=warplint.__version__,
        name=name,
        interpreter=interpreter.path,
        runtime=str(RUNTIME),
        spec=json.dumps(spec, indent=1),
    )
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return f"{DIRECTORY}/{name}"
