"""The commands and their options, as click sees them.

Only click and the standard library are imported here; every command brings what it needs
itself, so that listing rules does not wait for a parser.
"""

from __future__ import annotations

import math
from typing import Any

import click

from warplint import __version__
from warplint.cli.output import write
from warplint.config import FORMATS, STATIC_FAIL_ON

_HELP = {"help_option_names": ["-h", "--help"]}


class _DefaultCheck(click.Group):
    """A group whose default command is `check`: `warplint .` is `warplint check .`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--version", "-h", "--help"}
        if not args or (args[0] not in self.commands and args[0] not in own):
            args = ["check", *args]
        return super().parse_args(ctx, args)


class _Check(click.Command):
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


@cli.command("check", cls=_Check, context_settings=_HELP)
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option(
    "--probe",
    type=click.Choice(["all", "findings"]),
    help="Run the programs (the default); --probe=findings: only those that can decide a finding.",
)
@click.option("--no-probe", is_flag=True, help="Read the code only; nothing of it is executed.")
@click.option("--format", type=click.Choice(FORMATS), help="Format of the report (default: text).")
@click.option(
    "--output", multiple=True, metavar="FORMAT=FILE", help="Also write a report to FILE; repeatable."
)
@click.option("--output-file", metavar="FILE", help="Write the report to FILE instead of standard output.")
@click.option(
    "--select", multiple=True, metavar="RULES", help="Only these rules: ids, prefixes (WL1) or names."
)
@click.option("--ignore", multiple=True, metavar="RULES", help="All but these rules.")
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="Files to leave out, as in a .gitignore; repeatable."
)
@click.option("--strict", is_flag=True, help="Fail on latent and undecided results too.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever was found.")
@click.option(
    "--static-fail-on",
    type=click.Choice(STATIC_FAIL_ON),
    help="With --no-probe: precision from which a finding fails the run (default: very-high).",
)
@click.option("--show-dismissed", is_flag=True, help="Show findings that the probe cleared.")
@click.option("--statistics", is_flag=True, help="Count results by rule and verdict.")
@click.option("-q", "--quiet", is_flag=True, help="One line a result and nothing else.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Say more: every direction, calls not followed, tracebacks."
)
@click.option("--config", metavar="FILE", help="Configuration to use (default: the nearest one above PATHS).")
@click.option(
    "--entry", multiple=True, metavar="'FILE ARGS'", help="Program to run, with arguments; repeatable."
)
@click.option(
    "--set", multiple=True, metavar="MODULE.NAME=VALUE", help="Override a constant for the probe; repeatable."
)
@click.option("--list-programs", is_flag=True, help="List the programs that would be run, and stop.")
@click.option(
    "--timeout",
    type=_Seconds(),
    metavar="SECONDS",
    help="For one program (default: 60).",
)
@click.option(
    "--budget",
    type=_Seconds(),
    metavar="SECONDS",
    help="For all programs (default: 600).",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that read code (default: as many as there are) and programs to run at the same time"
    " (default: 1).",
)
@click.option("--no-cache", is_flag=True, help="Read everything anew; use and keep nothing of other runs.")
@click.option(
    "--python",
    metavar="FILE",
    help="Interpreter that runs the programs (default: the project's own if it has Warp, else warplint's).",
)
@click.option(
    "--device",
    metavar="cpu",
    help="Where the programs run. Only cpu: CUDA programs are run on the CPU by this version.",
)
@click.option("--tracker", is_flag=True, help="Also run Warp's own overwrite tracker (slow: it recompiles).")
@click.option("--timings", is_flag=True, help="Report how long things took.")
@click.option(
    "--stop-after", type=click.Choice(["static"]), help="Stop after a stage; for looking at warplint itself."
)
def check_command(**given: Any) -> int:
    """Check Warp programs: the current directory, or PATHS."""
    from warplint.cli.command import run_check

    return run_check(given)


@cli.command("graph", context_settings=_HELP)
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


@cli.command("rule", context_settings=_HELP)
@click.argument("rule")
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
