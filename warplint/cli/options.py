"""What a run was asked to do: the command line laid over the configuration."""

from __future__ import annotations

import difflib
import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplint import buffers
from warplint.cli.errors import CallError, error_text
from warplint.cli.selection import Selection, resolve
from warplint.cli.shards import Shard, parse_shard
from warplint.config import FORMATS, Config, ConfigError, find_config, lay_over, load_config, parse_assignment
from warplint.model import Rule
from warplint.source.discovery import SourceFile, display_path
from warplint.source.workers import available

DEFAULT_TIMEOUT = 60.0
DEFAULT_BUDGET = 600.0
STDIN_NAME = "<stdin>"


@dataclass(frozen=True)
class Options:
    """Everything a run depends on, decided and checked."""

    root: Path
    paths: tuple[Path, ...]
    config: Config
    selection: Selection
    exclude: tuple[str, ...]
    cache: bool
    jobs: int
    """Processes for reading code."""
    probe: str
    """``all``, ``findings`` or ``none``."""
    stop_after_static: bool
    entries: tuple[str, ...]
    entry_directory: Path
    """Where entries are found and run: that of the call, or of the configuration that has them."""
    settings: Mapping[str, Any]
    """For ``ProbeSettings``."""
    format: str
    outputs: tuple[tuple[str, Path | None], ...]
    """Every report that is written, the main one last; ``None`` is standard output."""
    fix: bool
    diff: bool
    """Show what fixes would change, on standard output, where no report goes then."""
    unsafe_fixes: bool
    strict: bool
    exit_zero: bool
    static_fail_on: str
    statistics: bool
    show_dismissed: bool
    quiet: bool
    verbose: bool
    timings: bool
    buffer: SourceFile | None = None
    """What came on standard input, in the place of all files."""
    changed_since: str | None = None
    shard: Shard | None = None
    baseline: Path | None = None
    write_baseline: Path | None = None


def decide(
    given: Mapping[str, Any], rules: Mapping[str, Rule], settings: Mapping[str, Any] | None = None
) -> Options:
    """Merge the parsed command line with the configuration; a flag always wins.

    ``settings`` are an editor's, in the names of the configuration: they win over the file.
    """
    root = Path.cwd()
    _contradictions(given)
    buffer = _buffer(given, root)
    paths = tuple(Path(path) for path in given["paths"]) or (Path("."),)
    if buffer is not None:
        paths = (buffer.path,)
    for path in paths if buffer is None else ():
        try:
            if buffers.held(root / path) is None:
                path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise CallError(f"no such file or directory: {path}{_meant(path, paths)}") from None
        except (OSError, ValueError) as error:
            raise CallError(f"cannot read {path}: {error_text(error)}") from None
    config = _config(given, paths, root)
    if settings:
        try:
            config = lay_over(config, settings, "editor settings")
        except ConfigError as error:
            raise CallError(str(error)) from None

    def flag(name: str) -> bool:
        return bool(given[name] or getattr(config, name))

    probe = _probe(given, config)
    if buffer is not None and (given["fix"] or given["diff"]):
        raise CallError("standard input cannot be fixed: its program is not run")
    if probe == "none" and (given["fix"] or given["diff"]) and not given["unsafe_fixes"]:
        raise CallError("without the probe no fix can be verified; --unsafe-fixes takes those that were not")
    return Options(
        root=root,
        paths=paths,
        config=config,
        selection=_selection(given, config, rules, root),
        exclude=tuple(given["exclude"]),
        cache=not flag("no_cache"),
        jobs=given["jobs"] or config.jobs or available(),
        probe="none" if buffer is not None else probe,
        stop_after_static=given["stop_after"] == "static",
        entries=tuple(given["entry"]) or config.probe.entries,
        entry_directory=root if given["entry"] else config.directory,
        settings=_settings(given, config, root),
        format=given["format"] or config.format,
        outputs=tuple(
            (format, file)
            for format, file in _outputs(given, config)
            if file is not None or not given["diff"]
        ),
        fix=given["fix"] and not given["diff"],
        diff=given["diff"],
        unsafe_fixes=given["unsafe_fixes"],
        strict=flag("strict"),
        exit_zero=flag("exit_zero"),
        static_fail_on=given["static_fail_on"] or config.static_fail_on,
        statistics=flag("statistics"),
        show_dismissed=flag("show_dismissed"),
        quiet=flag("quiet"),
        verbose=flag("verbose"),
        timings=given["timings"],
        buffer=buffer,
        changed_since=given["changed_since"],
        shard=parse_shard(given["shard"]) if given["shard"] else None,
        baseline=_baseline(given, config, root),
        write_baseline=Path(given["write_baseline"]) if given["write_baseline"] else None,
    )


def _meant(path: Path, paths: tuple[Path, ...]) -> str:
    """A first word that is no file may be a command with a slip of the pen."""
    from warplint.cli.commands import cli

    near = difflib.get_close_matches(str(path), cli.commands, n=1, cutoff=0.7)
    return f"; did you mean the command '{near[0]}'?" if near and path == paths[0] else ""


def _config(given: Mapping[str, Any], paths: tuple[Path, ...], root: Path) -> Config:
    try:
        if given["config"]:
            chosen = Path(given["config"])
            try:
                there = chosen.is_file()
            except OSError as error:
                raise CallError(f"cannot read {chosen}: {error_text(error)}") from None
            if not there:
                raise CallError(f"no such configuration file: {chosen}")
            return load_config(chosen.resolve())
        return load_config(find_config(list(paths), root))
    except ConfigError as error:
        # The file as the user would type it, where it lies below the starting directory.
        raise CallError(str(error).replace(f"{root}{os.sep}", "")) from None


def _selection(given: Mapping[str, Any], config: Config, rules: Mapping[str, Rule], root: Path) -> Selection:
    source = config.source.name if config.source else ""
    select, select_from = (
        (given["select"], "--select") if given["select"] else (config.select, f"{source}: select")
    )
    selection = Selection(
        selected=resolve(select, rules, select_from) if select else None,
        ignored=resolve(given["ignore"], rules, "--ignore")
        | resolve(config.ignore, rules, f"{source}: ignore"),
        per_file=tuple(
            (glob, resolve(names, rules, f"{source}: per-file-ignores.'{glob}'"))
            for glob, names in config.per_file_ignores
        ),
        base=config.directory,
        root=root,
    )
    if selection.selected == frozenset():
        raise CallError(f"{select_from}: names no rule")
    if selection.selected is not None and selection.selected <= selection.ignored:
        raise CallError("all selected rules are ignored: --select and --ignore leave none")
    return selection


def _contradictions(given: Mapping[str, Any]) -> None:
    for one, other in (("no_probe", "probe"), ("quiet", "verbose")):
        if given[one] and given[other]:
            names = " and ".join(f"--{name.replace('_', '-')}" for name in (one, other))
            raise CallError(f"{names} contradict each other")
    mends = given["fix"] or given["diff"]
    if given["unsafe_fixes"] and not mends:
        raise CallError("--unsafe-fixes needs --fix or --diff")
    for name in ("stop_after", "shard", "write_baseline"):
        if mends and given[name]:
            raise CallError(f"--{name.replace('_', '-')} and fixes do not go together")


def _device(given: Mapping[str, Any], config: Config) -> str:
    device, where = (
        (given["device"], "--device")
        if given["device"] is not None
        else (config.probe.device, "configuration: probe.device")
    )
    if device is None or device == "cpu":
        return "cpu"
    if device.partition(":")[0] == "cuda":
        raise CallError(
            f"{where}: probing on a CUDA device is not supported by this version;"
            " CUDA programs are run on the CPU"
        )
    raise CallError(f"{where}: unknown device '{device}'; this version probes on cpu only")


def _python(given: Mapping[str, Any], config: Config) -> str | None:
    """The interpreter that was named; a path in the configuration is relative to its file."""
    named = config.probe.python
    if given["python"] or not named or os.sep not in named or named.startswith("~"):
        return given["python"] or named
    return str(config.directory / named)


def _probe(given: Mapping[str, Any], config: Config) -> str:
    if given["no_probe"] or given["stop_after"]:
        return "none"
    if given["probe"]:
        return str(given["probe"])
    return "none" if config.no_probe else "all"


def _settings(given: Mapping[str, Any], config: Config, root: Path) -> dict[str, Any]:
    probe = config.probe
    overrides = dict(probe.set)
    for item in given["set"]:
        try:
            name, value = parse_assignment(item)
        except ValueError as error:
            raise CallError(f"--set: {error}") from None
        overrides[name] = value
    settings: dict[str, Any] = {
        "root": root,
        "timeout": given["timeout"] or probe.timeout or DEFAULT_TIMEOUT,
        "budget": given["budget"] or probe.budget or DEFAULT_BUDGET,
        "python": _python(given, config),
        "device": _device(given, config),
        "jobs": given["jobs"] or config.jobs or 1,
        "overrides": tuple(overrides.items()),
        "cache": not (given["no_cache"] or config.no_cache),
        "tracker": bool(given["tracker"] or config.tracker),
    }
    # Only what was asked for: a probe that cannot honour it says so instead of ignoring it.
    extra = {"env": probe.env, "objective": probe.objective, "parameters": probe.parameters}
    settings.update({name: value for name, value in extra.items() if value})
    return settings


def _outputs(given: Mapping[str, Any], config: Config) -> tuple[tuple[str, Path | None], ...]:
    """The reports of a run; where `--output` fills standard output, the usual report is not wanted."""
    main: tuple[str, Path | None] = (given["format"] or config.format, _file(given["output_file"]))
    others = [_output(item) for item in given["output"]]
    asked_for = given["format"] or given["output_file"]
    outputs = [*others, main] if asked_for or all(file for _, file in others) else others
    for place, times in Counter(file for _, file in outputs).items():
        if times > 1:
            where = "standard output" if place is None else str(place)
            raise CallError(f"--output: only one report can go to {where}")
    return tuple(outputs)


def _output(item: str) -> tuple[str, Path | None]:
    format, equals, file = item.partition("=")
    if not equals or not file:
        raise CallError(f"--output: '{item}' is not of the form FORMAT=FILE")
    if format not in FORMATS:
        raise CallError(f"--output: unknown format '{format}'; choose {', '.join(FORMATS)}")
    return format, _file(file)


def _file(name: str | None) -> Path | None:
    """A file to write, or ``None`` for standard output, which is also called ``-``."""
    return Path(name) if name and name != "-" else None


def _buffer(given: Mapping[str, Any], root: Path) -> SourceFile | None:
    """The text on standard input, if that is what is to be checked."""
    paths, name = given["paths"], given["stdin_filename"]
    if "-" not in paths and not name:
        return None
    if set(paths) - {"-"}:
        raise CallError("standard input is checked alone: leave out the PATHS, or - and --stdin-filename")
    for option in ("entry", "probe", "changed_since", "shard", "write_baseline", "list_programs"):
        if given[option]:
            raise CallError(f"--{option.replace('_', '-')}: standard input is only read, never run")
    if sys.stdin is None:
        raise CallError("cannot read standard input: it is closed")
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise CallError(f"cannot read standard input: {error_text(error)}") from None
    path = Path(os.path.abspath(root / (name or STDIN_NAME)))
    return SourceFile.holding(path, display_path(path, root), data)


def _baseline(given: Mapping[str, Any], config: Config, root: Path) -> Path | None:
    """The baseline to use; one that is written in this run need not be there yet."""
    if given["baseline"]:
        return Path(given["baseline"])
    if config.baseline is None or given["write_baseline"]:
        return None
    return Path(display_path(Path(os.path.abspath(config.directory / config.baseline)), root))
