"""`warplint merge`: one report out of several, as if one process had written it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warplint import __version__
from warplint.cli.errors import CallError, error_text
from warplint.cli.output import ensure_open, read_text
from warplint.cli.reports import new_context, repository, write_reports
from warplint.cli.shards import ShardRecord
from warplint.cli.status import CLEAN, FAILED, exit_status
from warplint.combine import combine
from warplint.model import ProgramRow, Report, Result, from_plain
from warplint.report.json import SCHEMA, program_of, result_of
from warplint.rulebook import load_rules


@dataclass(frozen=True)
class Part:
    """One file, read."""

    name: str
    format: str
    results: tuple[Result, ...]
    programs: tuple[ProgramRow, ...]
    shard: ShardRecord | None
    fingerprints: dict[tuple[str, int], str]


def merge(
    names: Sequence[str], format: str | None, output_file: str | None, *, strict: bool, exit_zero: bool
) -> int:
    """Write the merged report; the exit status is the one that a single run would have had."""
    parts = [_part(name) for name in names]
    first = parts[0]
    for part in parts[1:]:
        if part.format != first.format:
            raise CallError(f"{first.name} is {first.format} and {part.name} is {part.format}")
    if format not in (None, "sarif") and first.format == "sarif":
        raise CallError(f"--format: SARIF has no programs; only reports in json merge into {format}")
    call = _one_call(parts)
    results = combine(_in_all_shards(parts) if call else [r for p in parts for r in p.results])
    rows = {(row.program, row.arguments): row for part in parts for row in part.programs}
    report = Report(results=results, programs=tuple(rows[key] for key in sorted(rows)))
    probed = call.probed if call else not any(r.reason == "probing-disabled" for r in results)
    rules = load_rules()
    root = Path.cwd()
    if call:
        root = Path(os.path.normpath(repository(root) / call.directory))
    context = replace(
        new_context(rules, root, lambda file: read_text(root / file)),
        checked_files=call.files if call else len({r.location.file for r in results}),
        probed=probed,
        fingerprints={key: value for part in parts for key, value in part.fingerprints.items()},
    )
    target = Path(output_file) if output_file and output_file != "-" else None
    if target is None:
        ensure_open()
    write_reports(
        report,
        [(format or first.format, target)],
        context,
        show_dismissed=call is None or call.show_dismissed,
    )
    if exit_zero or (call and call.exit_zero):
        return CLEAN
    strict = strict or bool(call and call.strict)
    if strict and any(part.shard and part.shard.undecided for part in parts):
        return FAILED  # SARIF does not say which program
    return exit_status(
        report,
        rules,
        probed=probed,
        strict=strict,
        static_fail_on=call.static_fail_on if call else "very-high",
    )


def _one_call(parts: Sequence[Part]) -> ShardRecord | None:
    """What the shards have in common, all of one run; ``None`` where the reports are whole."""
    shards = [(part, part.shard) for part in parts if part.shard is not None]
    if not shards:
        return None
    whole = [part.name for part in parts if part.shard is None]
    if whole:
        raise CallError(f"{shards[0][0].name} is a shard and {whole[0]} is not")
    seen: dict[int, str] = {}
    first_part, first = shards[0]
    for part, shard in shards:
        if not shard.same_call(first):
            raise CallError(f"{first_part.name} and {part.name} are shards of different calls")
        if shard.index in seen:
            raise CallError(f"{seen[shard.index]} and {part.name} are both shard {shard.index}")
        seen[shard.index] = part.name
    for index in range(1, first.count + 1):
        if index not in seen:
            raise CallError(f"shard {index} of {first.count} is missing")
    return first


def _in_all_shards(parts: Sequence[Part]) -> Iterable[Result]:
    """The results of shards: a comment is unused only if no shard has used it."""
    told = [{(r.location, r.message) for r in part.results if r.rule == "WL001"} for part in parts]
    unused = set.intersection(*told)
    for part in parts:
        yield from (r for r in part.results if r.rule != "WL001" or (r.location, r.message) in unused)


def _part(name: str) -> Part:
    try:
        text = Path(name).read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise CallError(f"cannot read {name}: {error_text(error)}") from None
    try:
        document = json.loads(text)
        if "runs" in document:
            return _of_sarif(name, document)
        if document["schema"] == SCHEMA:
            return _of_json(name, document)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        pass
    raise CallError(f"{name} is no json or sarif report of warplint")


def _of_json(name: str, document: Any) -> Part:
    _same_version(name, document["warplint"])
    return Part(
        name,
        "json",
        tuple(result_of(record) for record in document["results"]),
        tuple(program_of(record) for record in document["programs"]),
        _shard(document),
        {},
    )


def _of_sarif(name: str, document: Any) -> Part:
    (run,) = document["runs"]
    if run["tool"]["driver"]["name"] != "warplint":
        raise ValueError
    _same_version(name, run["tool"]["driver"]["version"])
    results = tuple(result_of(item["properties"]) for item in run["results"])
    fingerprints = {}
    for item, result in zip(run["results"], results, strict=True):
        found = item.get("partialFingerprints", {}).get("primaryLocationLineHash")
        if found:
            fingerprints[result.location.file, result.location.line] = str(found)
    return Part(name, "sarif", results, (), _shard(run.get("properties", {})), fingerprints)


def _shard(document: Any) -> ShardRecord | None:
    return from_plain(ShardRecord, document["shard"]) if "shard" in document else None


def _same_version(name: str, version: Any) -> None:
    if version != __version__:
        raise CallError(f"{name} was written by warplint {version}; this is {__version__}")
