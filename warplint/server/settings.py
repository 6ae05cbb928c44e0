"""What an editor's settings say: the configuration's own names, and whether programs may be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warplint.config import Config, ConfigError, lay_over

__all__ = ["Settings", "merged", "read"]

_LISTS = frozenset({"select", "ignore", "exclude", "entries", "parameters"})


@dataclass(frozen=True)
class Settings:
    """The settings of one folder."""

    table: Mapping[str, Any] = field(default_factory=dict)
    """What is laid over the configuration of the folder."""
    run: bool | None = None
    """Whether programs of the folder may be run; None: the user is asked when that is wanted."""
    on_save: bool = False
    """Whether the programs of a file are run when it is saved."""


def read(value: Any) -> Settings:
    """Check the settings as an editor hands them over; a mistake is a ``ConfigError``.

    ``probe`` is true or false, or a table as in the configuration, in which ``enabled`` says the
    same and ``on-save`` runs the programs of every file that is saved.
    """
    if value is None:
        return Settings()
    if not isinstance(value, Mapping):
        raise ConfigError("editor settings: expected a table")
    table = {key: _list(key, item) for key, item in value.items() if item is not None}
    probe = table.pop("probe", None)
    run, on_save = (probe if isinstance(probe, bool) else None), False
    if isinstance(probe, Mapping):
        own = {key: _list(key, item) for key, item in probe.items() if item is not None}
        run = _boolean(own.pop("enabled", None), "enabled")
        on_save = bool(_boolean(own.pop("on-save", None), "on-save"))
        if own:
            table["probe"] = own
    elif probe is not None and run is None:
        raise ConfigError("editor settings: probe: expected true, false or a table")
    if table.pop("no-probe", False):
        run = False
    lay_over(Config(), table, "editor settings")
    return Settings(table, run, on_save)


def merged(first: Any, second: Any) -> Any:
    """Two layers of settings, of which the second wins key by key."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        keys = {**first, **second}
        return {
            key: merged(first.get(key), second[key]) if second.get(key) is not None else first.get(key)
            for key in keys
        }
    return first if second is None else second


def _list(key: str, value: Any) -> Any:
    """An empty table is an empty list where a list is expected: Lua has but one of them."""
    return [] if value == {} and key in _LISTS else value


def _boolean(value: Any, name: str) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise ConfigError(f"editor settings: probe.{name}: expected true or false")
    return value
