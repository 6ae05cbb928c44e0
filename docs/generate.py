"""The pages of the site that are made from the code, so that they cannot drift from it.

A hook of MkDocs: it adds one page for each rule, CONTRIBUTING.md and CHANGELOG.md, and puts the
generated parts of the other pages in the place of their ``<!-- generated: NAME -->`` lines.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the checkout documents itself, not what happens to be installed

from warplint.cli.commands import cli  # noqa: E402
from warplint.model import Rule  # noqa: E402
from warplint.rulebook import load_rules  # noqa: E402

FAMILIES = {
    "0": "About the check itself",
    "1": "Values that are overwritten",
    "2": "Paths that are cut",
    "3": "Adjoints inside a kernel",
    "4": "Custom adjoints and replays",
    "5": "Training loops",
    "9": "What a measurement says",
}
"""What the first digit of a rule's id means."""

VERSIONS = ("1.13", "1.14", "1.15", "1.16", "1.17", "1.18", "1.19")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the rules' to the navigation."""
    pages = {f"rules/{rule.id}-{rule.name}.md": rule_page(rule) for rule in load_rules().values()}
    pages["contributing.md"] = at_root("CONTRIBUTING.md")
    pages["changelog.md"] = at_root("CHANGELOG.md")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    for section in config.nav or []:
        if "Rules" in section:
            section["Rules"] = ["rules/index.md", *rules_by_family()]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the generated parts of a page; a name that is not known ends the build."""
    return re.sub(r"<!-- generated: ([\w-]+) -->", lambda match: PARTS[match[1]](), markdown)


# --- rules ---------------------------------------------------------------------------------


def rules_by_family() -> Iterator[dict[str, list[str]]]:
    rules = load_rules().values()
    for digit, title in FAMILIES.items():
        paths = [f"rules/{rule.id}-{rule.name}.md" for rule in rules if rule.id[2] == digit]
        if paths:
            yield {f"{title} (WL{digit})": paths}


def rule_page(rule: Rule) -> str:
    """A rule's page, under a table of its front matter."""
    about = rule.docs.partition("#")[2] or "differentiability"
    facts = {
        "level": rule.level,
        "precision of the static finding": str(rule.precision),
        "Warp": rule.versions,
        "typical signature": f"`{rule.signature}`" if rule.signature else "",
        "Warp's documentation": f"[{about}]({rule.docs})" if rule.docs else "",
    }
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items() if value)
    title = f"---\ntitle: {rule.id} {rule.name}\n---\n\n# {rule.id} {rule.name}\n\n"
    return f"{title}{sentence(rule.summary)}\n\n| | |\n|---|---|\n{rows}\n\n{rule.text}"


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def link(rule: Rule, folder: str = "") -> str:
    return f"[{rule.id} {rule.name}]({folder}{rule.id}-{rule.name}.md)"


def index_by_family() -> str:
    parts = []
    for digit, title in FAMILIES.items():
        rules = [rule for rule in load_rules().values() if rule.id[2] == digit]
        if rules:
            rows = "\n".join(f"| {link(r)} | {r.summary} | {r.precision} |" for r in rules)
            head = "| rule | what it reports | precision |\n|---|---|---|"
            parts.append(f"### {title}\n\n{head}\n{rows}\n")
    return "\n".join(parts)


def index_by_version() -> str:
    """Rules that do not hold for every supported version; the others need no table."""
    parts = [f"| rule | {' | '.join(VERSIONS)} |\n|---|{'---|' * len(VERSIONS)}"]
    for rule in load_rules().values():
        holds = [applies(rule.versions, version) for version in VERSIONS]
        if not all(holds):
            parts.append(f"| {link(rule)} | {' | '.join('yes' if h else '–' for h in holds)} |")
    return "\n".join(parts)


def applies(versions: str, version: str) -> bool:
    """Whether a rule's ``versions`` (``any``, ``>=1.13``, ``<1.17``) include a version."""
    if versions in ("any", "all"):
        return True
    number = tuple(map(int, version.split(".")))
    for clause in versions.split(","):
        match = re.fullmatch(r"\s*(>=|<=|<|>|==)\s*(\d+)\.(\d+)\s*", clause)
        if match is None:
            raise ValueError(f"not a range of versions: {versions!r}")
        bound = (int(match[2]), int(match[3]))
        holds = {
            ">=": number >= bound,
            "<=": number <= bound,
            "<": number < bound,
            ">": number > bound,
            "==": number == bound,
        }
        if not holds[match[1]]:
            return False
    return True


def programs_by_rule() -> str:
    """How many wrong and right programs the tests have of each rule."""
    expected = ROOT / "fixtures" / "expected.toml"
    of_fixtures = Counter(f["rule"] for f in toml(expected.read_text(encoding="utf-8"))["fixture"])
    rows = ["| rule | on its page | in `fixtures` | found by reading |", "|---|---|---|---|"]
    pairs = 0
    for rule in load_rules().values():
        on_page, fixtures = int(bool(rule.bad)), of_fixtures[rule.id]
        if on_page + fixtures:
            reading = rule.extra.get("found") != "run" and not rule.versions.startswith("<")
            says = "yes" if reading else "no, by the run alone"
            rows.append(f"| {link(rule, 'rules/')} | {on_page} | {fixtures} | {says} |")
            pairs += on_page + fixtures
    return f"{pairs} wrong programs, each with its right twin:\n\n" + "\n".join(rows)


def run_only_rules() -> str:
    """The rules that no check looks for in the code."""
    checks = {path.name[:5].upper() for path in (ROOT / "warplint" / "checks").glob("wl*.py")}
    rules = [r for r in load_rules().values() if r.id not in checks and r.id[2] not in "09"]
    return "\n".join(f"- {link(rule, 'rules/')}: {rule.summary}" for rule in rules)


def toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


# --- the command line ----------------------------------------------------------------------


def command_line() -> str:
    """Every command with its arguments and options, from click."""
    context = click.Context(cli, info_name="warplint", **cli.context_settings)
    parts = [commands_table(context)]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None and not command.hidden:
            parts.append(
                command_section(
                    command,
                    click.Context(command, info_name=name, parent=context, **command.context_settings),
                )
            )
    return "\n\n".join(parts)


def commands_table(context: click.Context) -> str:
    rows = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None and not command.hidden:
            summary = command.get_short_help_str(limit=200)
            rows.append(f"| [`warplint {name}`](#warplint-{name}) | {cell(summary)} |")
    return "| command | |\n|---|---|\n" + "\n".join(rows)


def command_section(command: click.Command, context: click.Context) -> str:
    usage = " ".join(["warplint", str(context.info_name), *command.collect_usage_pieces(context)])
    title = f"## `warplint {context.info_name}`"
    lines = [title, "", f"```text\n{usage}\n```", "", paragraphs(command.help or "")]
    groups: dict[str, list[str]] = {}
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            rows = groups.setdefault(getattr(option, "group", ""), [])
            rows.append(option_row(option, context))
    for group, rows in groups.items():
        lines += ["", *([f"**{group}**", ""] if group else []), "| option | |", "|---|---|", *rows]
    return "\n".join(lines)


def option_row(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.make_metavar(context)}`"
    return f"| {names}{value} | {cell(option.help or '')}{default_of(option)} |"


def default_of(option: click.Option) -> str:
    if option.show_default and option.default is not None:
        return f" Default: {option.default}."
    return ""


def paragraphs(text: str) -> str:
    """Click's help text as Markdown; paragraphs that it is told not to wrap become blocks."""
    parts = []
    for part in inspect.cleandoc(text).split("\n\n"):
        if part.startswith("\b\n"):
            parts.append(f"```text\n{part[2:]}\n```")
        else:
            parts.append(" ".join(part.split()))
    return "\n\n".join(parts)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- pages that lie at the root of the repository ----------------------------------------------


def at_root(name: str) -> str:
    """A page of the repository's root, with its links as they are from ``docs``."""

    def turned(match: re.Match[str]) -> str:
        label, target = match[1], match[2]
        if target.startswith(("http://", "https://", "#")):
            return match[0]
        if target.startswith("docs/"):
            return f"[{label}]({target.removeprefix('docs/')})"
        return f"`{target}`"  # a file of the repository that is no page of the site

    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", turned, text)


PARTS: Mapping[str, Any] = {
    "rules-by-family": index_by_family,
    "rules-by-version": index_by_version,
    "commands": command_line,
    "programs-by-rule": programs_by_rule,
    "run-only-rules": run_only_rules,
}
