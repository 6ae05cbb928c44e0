"""The reference pages say what the code says: configuration keys, words of the reports, the JSON schema."""

from __future__ import annotations

import copy
import inspect
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from warplint.cli.main import main
from warplint.config import Config, ConfigError, ProbeConfig, load_config
from warplint.model import (
    Account,
    Course,
    Edit,
    Fix,
    Iteration,
    Localization,
    Location,
    Place,
    Report,
    Result,
    Verdict,
)
from warplint.probe.signature import SUSPECTS, signature, suspects
from warplint.report import render
from warplint.report.context import Context
from warplint.report.json import result_record
from warplint.report.verify import SIGNATURES

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
GOLDEN = DOCS.parent / "tests" / "report" / "golden"
SCHEMA = json.loads((DOCS / "schema" / "report-1.json").read_text("utf-8"))


def keys_of(table: str) -> dict[str, list[str]]:
    """Rows of a table of the configuration page, by key."""
    text = (DOCS / "configuration.md").read_text("utf-8").partition(f"<!-- keys: {table} -->\n")[2]
    rows = [line for line in text.partition("\n\n")[0].splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {row[0].strip("`"): row[1:] for row in cells}


def known_keys(tmp_path: Path, section: str) -> set[str]:
    """The keys that the reader of configurations knows, as its own error lists them."""
    file = tmp_path / "warplint.toml"
    file.write_text(f"{section}\nxyzzyx = 1\n")
    with pytest.raises(ConfigError) as error:
        load_config(file)
    return set(str(error.value).partition("known keys: ")[2].split(", "))


@pytest.mark.parametrize(("table", "section"), [("top", ""), ("probe", "[probe]")])
def test_every_key_is_explained_and_no_other(table, section, tmp_path):
    assert set(keys_of(table)) == known_keys(tmp_path, section)


@pytest.mark.parametrize(("table", "defaults"), [("top", Config()), ("probe", ProbeConfig())])
def test_defaults_are_those_of_the_code(table, defaults):
    for key, (kind, shown, _) in keys_of(table).items():
        default = getattr(defaults, key.replace("-", "_"))
        if isinstance(default, bool):
            assert (kind, shown) == ("true or false", str(default).lower()), key
        elif isinstance(default, str):
            assert shown == f"`{default}`", key
        elif isinstance(default, tuple):
            assert shown in ("none", "all", "what is found"), key


def test_limits_are_those_of_the_code():
    from warplint.cli.options import DEFAULT_BUDGET, DEFAULT_TIMEOUT

    keys = keys_of("probe")
    assert (keys["timeout"][1], keys["budget"][1]) == (f"{DEFAULT_TIMEOUT:g}", f"{DEFAULT_BUDGET:g}")


def test_the_page_s_example_is_read(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", (DOCS / "configuration.md").read_text("utf-8"), re.DOTALL)
    file = tmp_path / "pyproject.toml"
    file.write_text(example)
    config = load_config(file)
    assert config.probe.set == (("train.NUM_STEPS", "8"),)
    assert config.per_file_ignores == (("tests/*.py", ("WL1",)),)


def test_every_verdict_is_explained():
    text = (DOCS / "index.md").read_text("utf-8")
    for verdict in Verdict:
        assert f"| `{verdict}` |" in text


def test_every_signature_is_explained():
    names = set(re.findall(r'(?:return|else) f?"([a-z-]+)', inspect.getsource(signature)))
    assert {"correct", "zero", "undecided", "exact-factor"} <= names
    text = (DOCS / "method.md").read_text("utf-8")
    assert names <= set(re.findall(r"^\| `([a-z-]+)(?:\(2\))?` \|", text, re.MULTILINE))
    assert names <= set(SIGNATURES)


@pytest.mark.parametrize("name", SUSPECTS)
def test_the_table_of_signatures_lists_what_is_tried_first(name):
    text = (DOCS / "method.md").read_text("utf-8")
    (row,) = re.findall(rf"^\| `{name}(?:\(2\))?` \|(.*)\|$", text, re.MULTILINE)
    assert tuple(row.rsplit("|", 1)[1].split()) == suspects(name, [])


# --- the JSON report ---------------------------------------------------------------------------


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as our own reports have to meet it: every field of theirs is described."""
    schema = copy.deepcopy(schema)
    rare = {"cell", "fixed", "seconds", "shard", "verification"}

    def close(part: Any) -> None:
        if isinstance(part, list):
            for item in part:
                close(item)
        elif isinstance(part, dict):
            if part.get("type") == "object":
                part["additionalProperties"] = False
                assert set(part["properties"]) - set(part["required"]) <= rare
            for item in part.values():
                close(item)

    close(schema)
    return schema


def validate(report: Any) -> None:
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(report)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_report_with_everything_in_it():
    report = json.loads((GOLDEN / "report.json").read_text("utf-8"))
    assert any(result["evidence"] for result in report["results"])
    place = Location("train.py", 12, 5, 12, 9)
    mended = Result(
        rule="WL103",
        name="ping-pong-buffers",
        verdict=Verdict.CONFIRMED,
        message="two buffers take turns",
        location=place,
        fix=Fix("verified", (Edit(place, "new"),), before=0.58, after=float("nan")),
    )
    report["results"].append(result_record(mended))
    validate(report)


def test_a_report_of_a_real_tree(repository, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(repository)
    sarif = tmp_path / "report.sarif"
    call = ["check", "--no-probe", "--exit-zero", "--format", "json", "--timings", f"--output=sarif={sarif}"]
    assert main([*call, "fixtures"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["results"]) > 20
    validate(report)
    log = json.loads(sarif.read_text(encoding="utf-8"))
    schema = repository / "tests" / "report" / "sarif-schema-2.1.0.json"
    jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(log)
    assert [item["properties"] for item in log["runs"][0]["results"]] == report["results"]


def test_a_report_of_one_program():
    place = Place("the loss", 1.0, 2.0, 0.1, 0.5, "differs", step=3, location=Location("train.py", 12))
    account = Account(
        localization=Localization(
            "launch", "it parts here", place.location, windows=(place,), places=(place,)
        ),
        course=Course(
            "falls", "it falls", iterations=(Iteration(1, 0.5, 0.1, 0.1), Iteration(2, float("nan")))
        ),
    )
    validate(json.loads(render("json", Report(account=account), Context("0.1.0"))))


def test_a_report_of_a_notebook(repository, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = (repository / "fixtures" / "cloth_ping_pong" / "fit_wind.py").read_text("utf-8")
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "fit.ipynb").write_text(json.dumps(book))
    assert main(["check", "--no-probe", "--exit-zero", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [result["location"]["cell"] for result in report["results"]] == [1]
    validate(report)


def test_a_report_of_a_shard(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    call = ["check", "--no-probe", "--exit-zero", "--format", "json", "--shard", "1/2"]
    assert main([*call, "fixtures/cloth_ping_pong"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["shard"]["count"] == 2
    validate(report)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report.update(schema=2),
        lambda report: report["results"][0].update(verdict="guilty"),
        lambda report: report["results"][0].pop("message"),
        lambda report: report["results"][0]["location"].update(line=0),
        lambda report: report["programs"][0].update(status="fine"),
    ],
)
def test_what_is_no_report(spoil):
    report = json.loads((GOLDEN / "report.json").read_text("utf-8"))
    spoil(report)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, SCHEMA)
