"""The entry point: runs a command and turns whatever goes wrong into one line and a status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from warplint import __version__

if TYPE_CHECKING:
    import click


def run(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `warplint` command."""
    sys.exit(main(arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        # Answered before anything is imported: editors and hooks ask for it again and again.
        print(f"warplint {__version__}")
        return 0
    import click

    from warplint.cli.commands import cli
    from warplint.cli.errors import CallError
    from warplint.cli.output import silence

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name or a message that the terminal cannot show must not end the run.
            stream.reconfigure(errors="backslashreplace")
    try:
        # Not `cli.main()`: it has ideas of its own about interrupts and broken pipes.
        with cli.make_context("warplint", words) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _fail(_explain(error))
    except CallError as error:
        return _fail(str(error))
    except (KeyboardInterrupt, click.Abort):
        print("warplint: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        silence()
        return 0
    except Exception as error:
        if "--verbose" in words or "-v" in words:
            raise
        return _fail(f"internal error: {type(error).__name__}: {error} (--verbose shows where)")


def _fail(message: str) -> int:
    print(f"warplint: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _explain(error: click.ClickException) -> str:
    import difflib

    import click

    if isinstance(error, click.NoSuchOption):
        known = [name for param in error.ctx.command.params for name in param.opts] if error.ctx else []
        near = difflib.get_close_matches(error.option_name, known, n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]}?" if near else "; see `warplint --help`"
        return f"unknown option {error.option_name}{hint}"
    if isinstance(error, click.MissingParameter):
        return _plain(error.format_message())
    if isinstance(error, click.BadParameter) and error.param is not None:
        name = error.param.opts[0] if error.param.opts else str(error.param.name)
        return f"{name}: {_plain(error.message)}"
    return _plain(error.format_message())


def _plain(message: str) -> str:
    message = message.strip().rstrip(".")
    return message[:1].lower() + message[1:]
