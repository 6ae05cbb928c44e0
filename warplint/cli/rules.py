"""`warplint rule` and `warplint rules`: the rulebook on a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping

from warplint.model import Rule, to_plain
from warplint.rulebook import sections


def explain(rule: Rule, format: str) -> str:
    """One rule's page as text, JSON or Markdown."""
    if format == "json":
        return _dump(_record(rule))
    if format == "markdown":
        return f"# {rule.id} {rule.name}\n\n{rule.summary}\n\n{rule.text}"
    facts = [("level", rule.level), ("precision", str(rule.precision)), ("Warp", rule.versions)]
    if rule.signature:
        facts.append(("signature", rule.signature))
    if rule.docs:
        facts.append(("docs", rule.docs))
    wide = max(len(name) for name, _ in facts)
    lines = [f"{rule.id} {rule.name}", "", rule.summary, ""]
    lines += [f"{name.ljust(wide)}  {value}" for name, value in facts]
    return "\n".join(lines) + f"\n\n{rule.text}"


def listing(rules: Mapping[str, Rule], format: str) -> str:
    """All rules, one line each."""
    if format == "json":
        return _dump([_record(rule) for rule in rules.values()])
    if format == "markdown":
        rows = [f"| {rule.id} | {rule.name} | {rule.summary} |" for rule in rules.values()]
        return "\n".join(["| id | name | what it reports |", "|---|---|---|", *rows]) + "\n"
    wide = max(len(rule.name) for rule in rules.values())
    lines = [f"{rule.id}  {rule.name.ljust(wide)}  {rule.summary}" for rule in rules.values()]
    return "\n".join(lines) + "\n"


def _record(rule: Rule) -> dict[str, object]:
    record = dict(to_plain(rule))
    record["sections"] = sections(rule.text)
    return record


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
