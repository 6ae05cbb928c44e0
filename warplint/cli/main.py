"""The entry point: runs a command and turns whatever goes wrong into one line and a status."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from warplint import __version__
from warplint.cli.errors import CallError, Terminated, error_text

if TYPE_CHECKING:
    import click


def run(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `warplint` command."""
    sys.exit(main(arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_standard_streams()
    if words == ["--version"]:
        # Answered before anything is imported: editors and hooks ask for it again and again.
        return _version()
    try:
        os.getcwd()
    except OSError as error:
        return _fail(f"cannot read the current directory: {error_text(error)}")
    import click

    from warplint.cli.commands import cli
    from warplint.cli.completion import answer
    from warplint.cli.output import silence

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name or a message that the terminal cannot show must not end the run.
            stream.reconfigure(errors="backslashreplace")
    asked = answer(cli)
    if asked is not None:
        return asked
    try:
        # Not `cli.main()`: it has ideas of its own about interrupts and broken pipes.
        with _signals(), cli.make_context("warplint", words) as context:
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
    except Terminated as ended:
        with contextlib.suppress(OSError):  # the terminal may be what has gone
            print(f"warplint: ended by {signal.Signals(ended.number).name}", file=sys.stderr)
        return 128 + ended.number
    except BrokenPipeError:
        silence()
        return 0
    except Exception as error:
        if "--verbose" in words or "-v" in words:
            raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            silence()
            return _fail(f"cannot write: {error_text(error)}")
        return _fail(f"internal error: {type(error).__name__}: {error} (--verbose shows where)")


def _version() -> int:
    from warplint.cli.output import write

    try:
        write(f"warplint {__version__}\n")
    except CallError as error:
        return _fail(str(error))
    return 0


def _open_standard_streams() -> None:
    """Keep descriptors that the caller closed from being given to files of this run."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    if sys.stderr is None:
        # `print` to None goes to standard output, where the report belongs.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception: the first one; cleaning up is not disturbed."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    before = {number: signal.getsignal(number) for number in numbers}
    taken = [number for number in numbers if before[number] is signal.SIG_DFL]  # nohup ignores one

    def end(number: int, frame: object) -> None:
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        raise Terminated(number)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


def _fail(message: str) -> int:
    from warplint.report.lines import plain

    print(f"warplint: error: {plain(' '.join(message.split()))}", file=sys.stderr)
    return 2


def _explain(error: click.ClickException) -> str:
    import difflib

    import click

    if isinstance(error, click.NoSuchOption):
        known = [name for param in error.ctx.command.params for name in param.opts] if error.ctx else []
        near = difflib.get_close_matches(error.option_name, known, n=1, cutoff=0.7)
        path = error.ctx.command_path if error.ctx else "warplint"
        hint = f"; did you mean {near[0]}?" if near else f"; see `{path} --help`"
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
