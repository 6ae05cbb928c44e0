"""The probe of one program: scout, measure, attribute; one JSON line a step on the report pipe.

Usage: ``python main.py SPEC.json`` with the pipe's number in ``WARPLINT_REPORT_FD``.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from typing import Any

_STARTED = time.monotonic()


def main(spec_path: str) -> int:
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    report = _Report(int(os.environ.pop("WARPLINT_REPORT_FD")))
    try:
        from . import session
    except ImportError as error:
        report.send({"type": "blocked", "reason": f"cannot import {error.name or error} in this interpreter"})
        return 0
    try:
        session.Session(spec, report.send, _STARTED).run()
    except Exception as error:
        # Never a silent death: what broke in the probe itself is told, with its traceback.
        report.send(
            {
                "type": "internal-error",
                "reason": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc(),
            }
        )
    return 0


class _Report:
    def __init__(self, fd: int) -> None:
        self.fd = fd

    def send(self, message: dict[str, Any]) -> None:
        data = (json.dumps(message, default=_plain) + "\n").encode()
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


if __name__ == "__main__":
    import bootstrap  # type: ignore[import-not-found]  # a sibling, found by path

    bootstrap.load("main").main(sys.argv[1])
    os._exit(0)
