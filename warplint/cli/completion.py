"""Shell completion: the script that a shell loads, and the answers that it asks for."""

from __future__ import annotations

import os

import click

from warplint.cli.output import write

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_WARPLINT_COMPLETE"


def script(shell: str, command: click.Command) -> int:
    """Print what makes ``shell`` complete `warplint`."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # SHELLS are click's own
    completion = kind(command, {}, "warplint", _VARIABLE)
    # Not `source()`: of bash it also asks the version, which is the business of who loads it.
    write(completion.source_template % completion.source_vars() + "\n")
    return 0


def answer(command: click.Command) -> int | None:
    """Answer a shell that asks for completions; ``None`` if none does."""
    from click.shell_completion import shell_complete

    asked = os.environ.get(_VARIABLE)
    return shell_complete(command, {}, "warplint", _VARIABLE, asked) if asked else None


def rule_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Ids and names of rules that begin like this, after the last comma."""
    from warplint.rulebook import load_rules

    before, comma, last = incomplete.rpartition(",")
    rules = load_rules()
    words = [*rules, *(rule.name for rule in rules.values())]
    return [f"{before}{comma}{word}" for word in words if word.lower().startswith(last.lower())]
