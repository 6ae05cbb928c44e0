"""What to do about a program that could not be run or measured: by what it died of."""

from __future__ import annotations

import re

from warplint.model import Program

_ADVICE = (
    (
        r"attempted relative import",
        "run it as the module of its package: --entry '-m package.module'",
    ),
    (
        r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'",
        "install {module} for the interpreter that runs the program (--python names another), put its"
        " directory on PYTHONPATH, or run the program as a module: --entry '-m package.module'",
    ),
    (
        r"exited with status 2|arguments? (is|are) required|sys\.argv",
        "give it the arguments that it needs: --entry '{file} ARGUMENTS'",
    ),
    (
        r"Read-only file system|PermissionError",
        "nothing outside the project can be written; an argument (--entry) or a constant (--set) may send it"
        " elsewhere",
    ),
    (
        r"URLError|ConnectionError|ConnectionRefused|name resolution|Network is unreachable|Max retries",
        "programs are run without the network; an argument (--entry) or a constant (--set) may name data"
        " on this machine",
    ),
    (
        r"FileNotFoundError",
        "programs are run in the directory of their file, those of --entry where warplint is started",
    ),
    (
        r"EOFError",
        "programs have no standard input; an argument (--entry) or a constant (--set) may take its place",
    ),
    (
        r"timed out|did not finish in time|a time limit of",
        "allow more (--timeout), or make it shorter with an argument (--entry) or a constant (--set)",
    ),
    (r"the budget of", "allow more for all programs (--budget), or name the ones to run (--entry)"),
    (
        r"ran no backward pass|no gradient was read",
        "name what makes it train (--entry '{file} ARGUMENTS'), or keep it from being run:"
        " exclude in [tool.warplint.probe]",
    ),
    (
        r"internal error|exited with status|raised \w+|signal",
        "see what it needs by running it by itself; --entry gives it arguments, --set other constants",
    ),
)


def advice(reason: str, program: Program) -> str | None:
    """One sentence, or nothing where the reason says it all."""
    for pattern, text in _ADVICE:
        found = re.search(pattern, reason)
        if found:
            return text.format(file=program.file, **found.groupdict())
    return None
