"""Configuration: ``[tool.warplint]`` in ``pyproject.toml``, or ``warplint.toml``.

The nearest ancestor of the checked paths that holds one of the two is used. Every key is
checked here, so that a typo is a message about the user's file instead of a setting that
silently has no effect. Globs and entries are relative to the directory of that file.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

FORMATS = ("text", "json", "sarif", "github")
STATIC_FAIL_ON = ("very-high", "high", "never")


class ConfigError(Exception):
    """The configuration cannot be used; the message names the file and the key."""


@dataclass(frozen=True)
class ProbeConfig:
    """``[tool.warplint.probe]``: which programs are run, and how."""

    entries: tuple[str, ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    timeout: float | None = None
    budget: float | None = None
    python: str | None = None
    device: str | None = None
    exclude: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    objective: str | None = None
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """``[tool.warplint]``: the same names as the flags of ``warplint check``."""

    source: Path | None = None
    """The file the values come from; ``None`` means defaults."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    format: str = "text"
    static_fail_on: str = "very-high"
    strict: bool = False
    exit_zero: bool = False
    statistics: bool = False
    show_dismissed: bool = False
    quiet: bool = False
    verbose: bool = False
    no_probe: bool = False
    jobs: int | None = None
    no_cache: bool = False
    tracker: bool = False
    baseline: str | None = None
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    probe: ProbeConfig = field(default_factory=ProbeConfig)

    @property
    def directory(self) -> Path:
        """The directory that globs and entries of the configuration are relative to."""
        return self.source.parent if self.source else Path.cwd()


def find_config(paths: list[Path], start: Path) -> Path | None:
    """Find the configuration that governs ``paths`` (``start`` where there are none).

    The search goes up from the paths' common directory and ends at a repository's root, so
    that a file outside the project can never change what a run reports.
    """
    places = [path if path.is_dir() else path.parent for path in (p.resolve() for p in paths)]
    here = _common(places) if places else start.resolve()
    for directory in (here, *here.parents):
        own = directory / "warplint.toml"
        if os.path.isfile(own):  # a directory that is closed to us has no configuration
            return own
        shared = directory / "pyproject.toml"
        if os.path.isfile(shared) and _has_table(shared):
            return shared
        if os.path.exists(directory / ".git"):
            return None
    return None


def load_config(path: Path | None) -> Config:
    """Read and check the configuration in ``path``; ``None`` gives the defaults."""
    if path is None:
        return Config()
    try:
        document = _parse(path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if path.name == "pyproject.toml":
        tool = document.get("tool", {})
        table = tool.get("warplint", {}) if isinstance(tool, dict) else {}
        title = "tool.warplint"
    else:
        # warplint.toml may be written either way: bare keys, or the table it would be elsewhere.
        tool = document.get("tool")
        nested = isinstance(tool, dict) and "warplint" in tool
        table = tool["warplint"] if nested else document  # type: ignore[index]
        title = "tool.warplint" if nested else ""
    return _Reader(path).top(table, title)


def lay_over(config: Config, table: Mapping[str, Any], where: str) -> Config:
    """``config`` with the keys of ``table``, which has the same names, in the place of its own."""
    given = _Reader(Path(where)).top(dict(table), "")
    names = {key.replace("-", "_") for key in table}
    changed = {name: getattr(given, name) for name in names - {"probe"}}
    settings = table.get("probe")
    if isinstance(settings, bool):
        changed["no_probe"] = given.no_probe
    elif settings is not None:
        keys = [key.replace("-", "_") for key in settings]
        changed["probe"] = replace(config.probe, **{key: getattr(given.probe, key) for key in keys})
    return replace(config, **changed)


def _common(places: list[Path]) -> Path:
    first, *rest = places
    for candidate in (first, *first.parents):
        if all(candidate == place or candidate in place.parents for place in rest):
            return candidate
    return first  # pragma: no cover - resolved absolute paths always share their root


def _parse(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # pragma: no cover - depends on the interpreter
        import tomli as tomllib

    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = re.search(r" ?\(at line (\d+), column (\d+)\)", message)
        where = f":{place[1]}:{place[2]}" if place else ""
        reason = re.sub(r" ?\(at line [^)]*\)", "", message).replace("(at end of document)", "at its end")
        raise ConfigError(f"{path}{where}: not valid TOML: {_lower_first(reason)}") from None


def _has_table(pyproject: Path) -> bool:
    try:
        if b"warplint" not in pyproject.read_bytes():
            return False
        tool = _parse(pyproject).get("tool")
    except OSError:
        return False
    return isinstance(tool, dict) and "warplint" in tool


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


_KIND = {
    bool: "true or false",
    str: "a string",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def _kind(value: Any) -> str:
    for kind in (bool, str, int, float, list, dict):
        if isinstance(value, kind):
            return _KIND[kind]
    return "a date or time"


class _Reader:
    """Turns one TOML table into records; knows the file, for the messages."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def top(self, table: Any, title: str) -> Config:
        keys: dict[str, Callable[[Any, str], Any]] = {
            "select": self.strings,
            "ignore": self.strings,
            "exclude": self.strings,
            "format": self.choice(FORMATS),
            "static-fail-on": self.choice(STATIC_FAIL_ON),
            "strict": self.boolean,
            "exit-zero": self.boolean,
            "statistics": self.boolean,
            "show-dismissed": self.boolean,
            "quiet": self.boolean,
            "verbose": self.boolean,
            "no-probe": self.boolean,
            "jobs": self.whole,
            "no-cache": self.boolean,
            "tracker": self.boolean,
            "baseline": self.string,
            "per-file-ignores": self.per_file,
            "probe": lambda value, name: self.probe(value, name),
        }
        values = self.read(table, title, keys)
        if isinstance(values.get("probe"), bool):
            # `probe = false` is the flag's spelling; the table is the section's.
            values["no_probe"] = not values.pop("probe")
        return Config(source=self.path, **values)

    def probe(self, value: Any, title: str) -> ProbeConfig | bool:
        if isinstance(value, bool):
            return value
        keys: dict[str, Callable[[Any, str], Any]] = {
            "entries": self.strings,
            "set": self.assignments,
            "timeout": self.seconds,
            "budget": self.seconds,
            "python": self.string,
            "device": self.string,
            "exclude": self.strings,
            "env": self.pairs,
            "objective": self.string,
            "parameters": self.strings,
        }
        return ProbeConfig(**self.read(value, title, keys))

    def read(self, table: Any, title: str, keys: Mapping[str, Callable[[Any, str], Any]]) -> dict[str, Any]:
        if not isinstance(table, dict):
            self.wrong(title, "a table", table)
        values = {}
        for key, value in table.items():
            if key not in keys:
                raise ConfigError(
                    f"{self.path}: unknown key '{key}'{self.where(title)}{self.hint(key, keys)}"
                )
            name = f"{title}.{key}" if title else key
            values[key.replace("-", "_")] = keys[key](value, name)
        return values

    @staticmethod
    def where(title: str) -> str:
        return f" in [{title}]" if title else ""

    @staticmethod
    def hint(key: str, keys: Mapping[str, Any]) -> str:
        plain = key.replace("_", "-").lower()
        if "entries" not in keys and plain in ("entries", "set", "timeout", "budget", "python", "device"):
            return f"; '{plain}' belongs in the probe table"
        near = difflib.get_close_matches(plain, keys, n=1, cutoff=0.5)
        if near:
            return f"; did you mean '{near[0]}'?"
        return f"; known keys: {', '.join(keys)}"

    def wrong(self, name: str, expected: str, value: Any) -> None:
        raise ConfigError(f"{self.path}: {name or 'the file'}: expected {expected}, got {_kind(value)}")

    def string(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            self.wrong(name, "a string", value)
        return str(value)

    def strings(self, value: Any, name: str) -> tuple[str, ...]:
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list):
            self.wrong(name, "a list of strings", value)
        for item in value:
            if not isinstance(item, str):
                raise ConfigError(
                    f"{self.path}: {name}: expected a list of strings, got a list that holds {_kind(item)}"
                )
        return tuple(value)

    def boolean(self, value: Any, name: str) -> bool:
        if not isinstance(value, bool):
            self.wrong(name, "true or false", value)
        return bool(value)

    def whole(self, value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(name, "a whole number", value)
        if value < 1:
            raise ConfigError(f"{self.path}: {name}: expected at least 1, got {value}")
        return int(value)

    def seconds(self, value: Any, name: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(name, "a number of seconds", value)
        if not 0 < value < float("inf"):
            raise ConfigError(f"{self.path}: {name}: expected a positive number of seconds, got {value}")
        return float(value)

    def choice(self, options: tuple[str, ...]) -> Callable[[Any, str], str]:
        def read(value: Any, name: str) -> str:
            text = self.string(value, name)
            if text not in options:
                raise ConfigError(f"{self.path}: {name}: '{text}' is not one of {', '.join(options)}")
            return text

        return read

    def pairs(self, value: Any, name: str) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, dict):
            self.wrong(name, "a table of strings", value)
        for key, item in value.items():
            if not isinstance(item, str):
                self.wrong(f"{name}.{key}", "a string", item)
        return tuple(sorted(value.items()))

    def assignments(self, value: Any, name: str) -> tuple[tuple[str, str], ...]:
        if isinstance(value, dict):
            return tuple((key, _literal(item)) for key, item in _flat(value))
        pairs = []
        for item in self.strings(value, name):
            try:
                pairs.append(parse_assignment(item))
            except ValueError as error:
                raise ConfigError(f"{self.path}: {name}: {error}") from None
        return tuple(pairs)

    def per_file(self, value: Any, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if not isinstance(value, dict):
            self.wrong(name, "a table of globs", value)
        return tuple((glob, self.strings(rules, f"{name}.'{glob}'")) for glob, rules in value.items())


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Join the tables that TOML makes of dotted keys: ``train.STEPS = 8`` is one name."""
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", value))
    return pairs


def _literal(value: Any) -> str:
    """A TOML value as the Python expression that `--set` would take."""
    return repr(value)


def parse_assignment(text: str) -> tuple[str, str]:
    """Split ``train.NUM_STEPS=8``; the error says what a ``--set`` looks like."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"'{text}' is not of the form module.NAME=value")
    return name, value.strip()
