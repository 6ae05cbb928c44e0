"""Which results are shown: `--select`, `--ignore`, per-file ignores."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplint.cli.errors import CallError
from warplint.model import Rule


def resolve(selectors: Iterable[str], rules: Mapping[str, Rule], where: str) -> frozenset[str]:
    """Turn ids, prefixes (``WL1``) and names into rule ids; ``where`` goes into the error."""
    chosen: set[str] = set()
    for selector in selectors:
        for word in selector.split(","):
            if word.strip():
                chosen |= _matches(word.strip(), rules, where)
    return frozenset(chosen)


def find_rule(word: str, rules: Mapping[str, Rule]) -> Rule:
    """The one rule that an id or a name means."""
    for rule in rules.values():
        if word.upper() == rule.id or word.lower() == rule.name:
            return rule
    raise CallError(_unknown(word, rules))


def _matches(word: str, rules: Mapping[str, Rule], where: str) -> set[str]:
    upper = word.upper()
    if upper == "ALL":
        return set(rules)
    found = {rule.id for rule in rules.values() if word.lower() == rule.name}
    if upper.startswith("WL"):
        found |= {id for id in rules if id.startswith(upper)}
    if not found:
        raise CallError(f"{where}: {_unknown(word, rules)}")
    return found


def _unknown(word: str, rules: Mapping[str, Rule]) -> str:
    """Name the rule that looks most like ``word``, or say where all are listed."""
    names = {rule.name: rule.id for rule in rules.values()}
    near = difflib.get_close_matches(word.upper(), rules, n=1, cutoff=0.7)
    near = near or difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    hint = f"did you mean '{near[0]}'?" if near else "`warplint rules` lists all"
    return f"unknown rule '{word}'; {hint}"


@dataclass(frozen=True)
class Selection:
    """Decides by rule and file whether a result is shown."""

    selected: frozenset[str] | None = None
    """``None``: all rules, also those a page is still missing for."""
    ignored: frozenset[str] = frozenset()
    per_file: tuple[tuple[str, frozenset[str]], ...] = ()
    base: Path = field(default_factory=Path.cwd)
    """The directory that the globs of ``per_file`` are relative to."""
    root: Path = field(default_factory=Path.cwd)
    """The directory that the names of files are relative to."""

    def shows(self, rule: str, file: str) -> bool:
        """Whether a result of ``rule`` in ``file`` is to be shown."""
        if rule in self.ignored or (self.selected is not None and rule not in self.selected):
            return False
        return not any(rule in rules and self._covers(glob, file) for glob, rules in self.per_file)

    def _covers(self, glob: str, file: str) -> bool:
        path = self.root / file
        try:
            name = path.relative_to(self.base).as_posix()
        except ValueError:
            name = path.as_posix()
        return matches_any(name, (glob,))


def matches_any(name: str, globs: Sequence[str]) -> bool:
    """Whether a relative POSIX path matches a glob written as in a ``.gitignore``."""
    if not globs:
        return False
    return bool(_spec(tuple(globs)).match_file(name))


def _spec(globs: tuple[str, ...]) -> Any:
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(globs)
