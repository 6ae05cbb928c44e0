"""Help that fits a screen: options in groups, a line each."""

from __future__ import annotations

from typing import Any

import click


class GroupedOption(click.Option):
    """An option that says under which heading its help stands."""

    def __init__(self, *args: Any, group: str = "More", **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose options are listed by their groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None and isinstance(param, GroupedOption):
                names = record[0].replace(" [=", "[=")  # `--probe[=findings]`
                groups.setdefault(param.group, []).append((names, param.help or ""))
            elif record is not None:
                groups.setdefault("More", []).append(record)
        wide = max(len(option) for records in groups.values() for option, _ in records)
        formatter.write_paragraph()
        for name in sorted(groups, key=lambda name: name == "More"):  # what has no group comes last
            formatter.write_heading(name)
            formatter.indent()
            formatter.write_dl([(option.ljust(wide), text) for option, text in groups[name]])
            formatter.dedent()
