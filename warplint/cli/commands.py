"""The commands and their options, as click sees them.

Only click and the standard library are imported here; every command brings what it needs
itself, so that listing rules does not wait for a parser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from warplint import __version__
from warplint.cli.completion import SHELLS, rule_names, script
from warplint.cli.output import write
from warplint.cli.screen import GroupedCommand, GroupedOption
from warplint.config import FORMATS, STATIC_FAIL_ON

_HELP = {"help_option_names": ["-h", "--help"]}


class _DefaultCheck(click.Group):
    """A group whose default command is `check`: `warplint .` is `warplint check .`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--version", "-h", "--help"}
        if not args and ctx.resilient_parsing:
            return super().parse_args(ctx, args)  # a shell asks what may come first
        if not args or (args[0] not in self.commands and args[0] not in own):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and what may follow the one that need not be named."""
        check = self.commands["check"]
        with click.Context(check, parent=ctx, info_name="check") as inner:
            more = check.shell_complete(inner, incomplete)
        if not incomplete.startswith("-"):
            more.append(CompletionItem(incomplete, type="file"))
        known = super().shell_complete(ctx, incomplete)
        return [*known, *(item for item in more if item.value not in {k.value for k in known})]


class _Check(GroupedCommand):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # `--probe` takes a value only when one is attached: in `--probe .` the dot is a path.
        end = args.index("--") if "--" in args else len(args)
        head = ["--probe=all" if arg == "--probe" else arg for arg in args[:end]]
        return super().parse_args(ctx, head + args[end:])


class _Seconds(click.ParamType):
    """A time limit: neither nothing, nor for ever, nor not a number."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            self.fail(f"expected a positive number of seconds, got '{value}'", param, ctx)
        return seconds


@click.group(cls=_DefaultCheck, context_settings=_HELP)
@click.version_option(__version__, message="warplint %(version)s")
def cli() -> None:
    """Find gradient bugs in NVIDIA Warp programs, and prove each by running the program.

    `warplint [PATHS]` is short for `warplint check [PATHS]`; its options are listed by
    `warplint check --help`. Checking runs the programs it finds; --no-probe runs nothing.
    """


_WHAT = "What is checked"
_RUNS = "Running programs"
_FIXES = "Fixes"
_REPORT = "The report"
_FAILS = "What fails the run"
_WORK = "The work"


def _option(*names: str, group: str, **more: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=GroupedOption, group=group, **more)


@cli.command("check", cls=_Check, context_settings=_HELP)
@click.argument("paths", nargs=-1, type=click.Path(readable=False, allow_dash=True))
@_option(
    "--select",
    group=_WHAT,
    multiple=True,
    metavar="RULES",
    shell_complete=rule_names,
    help="Only these: ids, prefixes (WL1) or names.",
)
@_option(
    "--ignore",
    group=_WHAT,
    multiple=True,
    metavar="RULES",
    shell_complete=rule_names,
    help="All rules but these.",
)
@_option(
    "--exclude", group=_WHAT, multiple=True, metavar="GLOB", help="Files to leave out, as in a .gitignore."
)
@_option(
    "--changed-since", group=_WHAT, metavar="REV", help="Changed files and programs that import one (git)."
)
@_option("--stdin-filename", group=_WHAT, metavar="NAME", help="Check standard input (-) under this name.")
@_option("--config", group=_WHAT, metavar="FILE", help="Default: the nearest configuration above PATHS.")
@_option(
    "--probe",
    group=_RUNS,
    type=click.Choice(["all", "findings"]),
    metavar="[=findings]",
    help="Run them (default), or what decides findings.",
)
@_option("--no-probe", group=_RUNS, is_flag=True, help="Read the code only; nothing of it is executed.")
@_option(
    "--entry",
    group=_RUNS,
    multiple=True,
    metavar="'FILE ARGS'",
    help="Program to run, with arguments; repeatable.",
)
@_option(
    "--set",
    group=_RUNS,
    multiple=True,
    metavar="MOD.NAME=VALUE",
    help="Override a constant for the run; repeatable.",
)
@_option("--list-programs", group=_RUNS, is_flag=True, help="List the programs that would be run, and stop.")
@_option("--python", group=_RUNS, metavar="FILE", help="Interpreter. Default: the project's own.")
@_option("--device", group=_RUNS, metavar="cpu", help="Only cpu: CUDA programs are run on the CPU.")
@_option("--timeout", group=_RUNS, type=_Seconds(), metavar="SECONDS", help="For one program (default: 60).")
@_option("--budget", group=_RUNS, type=_Seconds(), metavar="SECONDS", help="For all programs (default: 600).")
@_option("--tracker", group=_RUNS, is_flag=True, help="Run Warp's own overwrite tracker, too (slow).")
@_option("--fix", group=_FIXES, is_flag=True, help="Apply fixes; each is measured on a copy first.")
@_option("--diff", group=_FIXES, is_flag=True, help="Print what --fix would change; change nothing.")
@_option("--unsafe-fixes", group=_FIXES, is_flag=True, help="Also fixes that could not be measured.")
@_option(
    "--format",
    group=_REPORT,
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="text (default), json, sarif or github.",
)
@_option("--output-file", group=_REPORT, metavar="FILE", help="Write the report to FILE.")
@_option(
    "--output",
    group=_REPORT,
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write another one, too (FILE -: to stdout).",
)
@_option("--show-dismissed", group=_REPORT, is_flag=True, help="Show findings that the probe cleared.")
@_option("--statistics", group=_REPORT, is_flag=True, help="Count results by rule and verdict.")
@_option("--timings", group=_REPORT, is_flag=True, help="Report how long things took.")
@_option("-q", "--quiet", group=_REPORT, is_flag=True, help="One line a result and nothing else.")
@_option(
    "-v", "--verbose", group=_REPORT, is_flag=True, help="All directions, calls not followed, tracebacks."
)
@_option("--strict", group=_FAILS, is_flag=True, help="Latent and undecided results, too.")
@_option("--exit-zero", group=_FAILS, is_flag=True, help="Nothing: the exit status is 0 or 2.")
@_option(
    "--static-fail-on",
    group=_FAILS,
    type=click.Choice(STATIC_FAIL_ON),
    metavar="LEVEL",
    help="With --no-probe: very-high (default), high, never.",
)
@_option("--baseline", group=_FAILS, metavar="FILE", help="Leave out the results that FILE holds.")
@_option("--write-baseline", group=_FAILS, metavar="FILE", help="Put all results of this run into FILE.")
@_option(
    "--jobs",
    group=_WORK,
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that read, programs run at a time.",
)
@_option("--shard", group=_WORK, metavar="I/N", help="The I-th of N parts; see `warplint merge`.")
@_option("--no-cache", group=_WORK, is_flag=True, help="Use and keep nothing of other runs.")
@click.option("--stop-after", type=click.Choice(["static"]), hidden=True)
def check_command(**given: Any) -> int:
    """Check Warp programs: the current directory, or PATHS."""
    from warplint.cli.command import run_check

    return run_check(given)


@cli.command(
    "verify",
    context_settings={**_HELP, "allow_interspersed_args": False},
    short_help="Can the gradients of a program be trusted?",
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--horizon",
    type=click.IntRange(min=1),
    metavar="K",
    help="Measure over K time steps (default: as many as the program takes, if they fit the budget).",
)
@click.option("--budget", type=_Seconds(), metavar="SECONDS", help="For the program (default: 55).")
@click.option(
    "--iteration",
    type=click.IntRange(min=1),
    metavar="N",
    help="Iteration of the optimizer to measure (default: the first and the second).",
)
@click.option(
    "--parameter",
    multiple=True,
    metavar="NAME",
    help="Measure this parameter alone (default: all); repeatable.",
)
@click.option("--explain", is_flag=True, help="Tell how parameters, objective and gradient were found.")
@click.option(
    "--set", multiple=True, metavar="MODULE.NAME=VALUE", help="Override a constant for the probe; repeatable."
)
@click.option(
    "--python", metavar="FILE", help="Interpreter that runs the program (default: the project's own)."
)
@click.option("--tracker", is_flag=True, help="Also run Warp's own overwrite tracker (slow: it recompiles).")
@click.option(
    "--format", type=click.Choice(["text", "json", "sarif"]), help="Format of the report (default: text)."
)
@click.option("--output-file", metavar="FILE", help="Write the report to FILE instead of standard output.")
@click.option(
    "--strict", is_flag=True, help="Exit with 1, too, if it cannot be told whether the gradient is right."
)
@click.option(
    "--config", metavar="FILE", help="Configuration to use (default: the nearest one above PROGRAM)."
)
@click.option("--no-cache", is_flag=True, help="Use and keep nothing of other runs.")
@click.option("-v", "--verbose", is_flag=True, help="Show every direction and place; tracebacks.")
def verify_command(**given: Any) -> int:
    """Can the gradients of PROGRAM be trusted? Runs it as `python PROGRAM ARGUMENTS` and measures.

    Options come before PROGRAM; all that follows it belongs to the program.
    """
    from warplint.cli.verify import run_verify

    return run_verify(given)


@cli.command("graph", context_settings=_HELP, short_help="Draw what each tape of a program records.")
@click.argument("program")
@click.option(
    "--format",
    type=click.Choice(["dot", "svg", "mermaid", "json"]),
    default="dot",
    show_default=True,
    help="svg needs Graphviz.",
)
@click.option("--output-file", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("--scope", type=click.IntRange(min=1), metavar="N", help="Only the N-th scope that is reached.")
@click.option(
    "--turns",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Turns of a loop to draw; the others are folded into one box.",
)
def graph_command(program: str, format: str, output_file: str | None, scope: int | None, turns: int) -> int:
    """Draw the dataflow graph of each tape scope of PROGRAM, a Python file.

    Ellipses are the contents of arrays, boxes are operations. A thick edge is a value that the
    backward pass needs again; a red one overwrites such a value before it has been used.
    Nothing is executed.
    """
    from warplint.cli.graph import graph

    return graph(program, format, output_file, scope, turns)


@cli.command("merge", context_settings=_HELP)
@click.argument("files", nargs=-1, required=True, type=click.Path(readable=False))
@click.option(
    "--format", type=click.Choice(FORMATS), help="Default: that of FILES. SARIF merges into SARIF only."
)
@click.option("--output-file", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("--strict", is_flag=True, help="Fail on latent and undecided results too.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever was found.")
def merge_command(
    files: tuple[str, ...], format: str | None, output_file: str | None, strict: bool, exit_zero: bool
) -> int:
    """Put the reports of several runs, json or sarif, into one.

    The reports of all shards of one call give the report, and the exit status, that the call
    gives without --shard. Whole reports of different calls are merged as they are.
    """
    from warplint.cli.merge import merge

    return merge(files, format, output_file, strict=strict, exit_zero=exit_zero)


@cli.command(
    "completion", context_settings=_HELP, short_help="Print the script that makes a shell complete words."
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> int:
    """Print the script that makes a shell complete commands, options and rules.

    \b
    bash:  warplint completion bash >> ~/.bashrc
    zsh:   warplint completion zsh >> ~/.zshrc
    fish:  warplint completion fish > ~/.config/fish/completions/warplint.fish
    """
    return script(shell, cli)


@cli.command("rule", context_settings=_HELP)
@click.argument("rule", shell_complete=rule_names)
@click.option("--format", type=click.Choice(["text", "json", "markdown"]), default="text")
def rule_command(rule: str, format: str) -> int:
    """Explain one rule, named by id (WL101) or name."""
    from warplint.cli.rules import explain
    from warplint.cli.selection import find_rule
    from warplint.rulebook import load_rules

    write(explain(find_rule(rule, load_rules()), format))
    return 0


@cli.command("rules", context_settings=_HELP)
@click.option("--format", type=click.Choice(["text", "json", "markdown"]), default="text")
def rules_command(format: str) -> int:
    """List all rules."""
    from warplint.cli.rules import listing
    from warplint.rulebook import load_rules

    write(listing(load_rules(), format))
    return 0


@cli.command("server", context_settings=_HELP, short_help="Run the language server for editors.")
@click.option("--stdio", is_flag=True, help="Speak on standard input and output (it always does).")
def server_command(stdio: bool) -> int:
    """Run the language server for editors, on standard input and output.

    Nothing of a workspace is executed before its user has allowed it.
    """
    from warplint.cli.errors import CallError
    from warplint.server.main import MissingError, serve

    try:
        return serve()
    except MissingError as error:
        raise CallError(str(error)) from None
