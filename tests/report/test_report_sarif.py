"""SARIF: valid against the official schema, and shaped as GitHub reads it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
from pathlib import Path

import jsonschema
import pytest

from warplint.model import Edit, Fix, Location, Report, Result, Verdict
from warplint.report import render
from warplint.report.fingerprints import line_hashes

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def load(text: str) -> dict:
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


@pytest.fixture
def run(report, context) -> dict:
    document = load(render("sarif", report, context))
    assert len(document["runs"]) == 1
    return document["runs"][0]


def test_golden(report, context, golden):
    context = dataclasses.replace(context, rules={})  # the pages have tests of their own
    golden(HERE / "golden" / "report.sarif", render("sarif", report, context))


def test_empty_report_is_valid(context):
    run = load(render("sarif", Report(), context))["runs"][0]
    assert run["results"] == []
    assert run["tool"]["driver"]["name"] == "warplint"


def test_level_and_kind_are_always_written_out(run):
    found = {result["ruleId"]: (result["kind"], result["level"]) for result in run["results"]}
    assert found == {
        "WL002": ("fail", "error"),
        "WL201": ("review", "warning"),
        "WL103": ("fail", "error"),
        "WL105": ("fail", "warning"),
    }


def test_good_news_is_left_out(run):
    assert all(result["ruleId"] != "WL902" for result in run["results"])


def test_dismissed_is_a_pass(context):
    result = Result("WL101", "write-after-read", Verdict.DISMISSED, "m", Location("a.py", 1))
    run = load(render("sarif", Report((result,)), context))["runs"][0]
    assert (run["results"][0]["kind"], run["results"][0]["level"]) == ("pass", "none")


def test_rule_index_and_descriptors(run):
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    page = next(rule for rule in rules if rule["id"] == "WL103")
    assert page["helpUri"].startswith("https://nvidia.github.io/warp/")
    assert "## Bad" in page["help"]["markdown"]
    assert page["help"]["text"]
    assert page["properties"]["precision"] == "very-high"
    assert page["properties"]["problem.severity"] == "error"
    assert "security-severity" not in page["properties"]
    assert page["properties"]["tags"]
    for rule in rules:
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert len(rule["fullDescription"]["text"]) <= 1024
        assert len(rule["shortDescription"]["text"]) <= 1024


def test_sites_are_linked_and_told_in_order(run):
    result = next(item for item in run["results"] if item["ruleId"] == "WL103")
    for site in result["relatedLocations"]:
        assert f"({site['id']})" in result["message"]["text"]
    # Brackets inside a link's text would end it.
    assert "[value of q\\[i\\] read here, needed again](2)" in result["message"]["text"]
    (flow,) = result["codeFlows"]
    steps = [
        step["location"]["physicalLocation"]["region"]["startLine"]
        for step in flow["threadFlows"][0]["locations"]
    ]
    assert steps == [11, 7, 12, 14]


def test_paths_are_relative_to_the_repository(run):
    (place,) = run["results"][2]["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {
        "uri": "python/train.py",
        "uriBaseId": "%SRCROOT%",
    }
    assert "uri" not in run["originalUriBaseIds"]["%SRCROOT%"]


def test_a_file_outside_the_repository_has_an_absolute_uri(context):
    result = Result("WL101", "n", Verdict.NOTE, "m", Location("/opt/lib b/x.py", 1))
    run = load(render("sarif", Report((result,)), context))["runs"][0]
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///opt/lib%20b/x.py"}


def test_primary_region_stays_on_one_line(context):
    result = Result("WL101", "n", Verdict.NOTE, "m", Location("train.py", 12, 17, 14, 5))
    run = load(render("sarif", Report((result,)), context))["runs"][0]
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 12, "startColumn": 17}


def test_fingerprint_is_the_line_hash(run, context):
    result = run["results"][2]
    hashes = line_hashes(context.read_source("train.py"))
    assert result["partialFingerprints"] == {"primaryLocationLineHash": hashes[11]}


def test_properties_carry_the_record(run):
    record = run["results"][2]["properties"]
    assert record["verdict"] == "confirmed"
    assert record["evidence"]["counterfactual"]["relative_error"] == 0.00031


def test_run_identity(run):
    assert run["automationDetails"]["id"] == "warplint/"
    assert run["columnKind"] == "unicodeCodePoints"


def test_fixes(report, context):
    fix = Fix("verified", (Edit(Location("train.py", 12, 17, 12, 26), "wp.launch"),), 0.1, 0.0)
    result = dataclasses.replace(report.results[2], fix=fix)
    run = load(render("sarif", Report((result,)), context))["runs"][0]
    (change,) = run["results"][0]["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"]["text"] == "wp.launch"


def test_an_insertion_replaces_an_empty_region(report, context):
    fix = Fix("unsafe", (Edit(Location("train.py", 12, 17, 12, 17), "tape.zero()"),), title="zero it")
    result = dataclasses.replace(report.results[2], fix=fix)
    (found,) = load(render("sarif", Report((result,)), context))["runs"][0]["results"][0]["fixes"]
    assert found["description"]["text"] == "zero it (applicability: unsafe)."
    (change,) = found["artifactChanges"]
    region = change["replacements"][0]["deletedRegion"]
    assert region == {"startLine": 12, "startColumn": 17, "endLine": 12, "endColumn": 17}


def test_no_more_results_than_github_takes(context, monkeypatch):
    monkeypatch.setattr("warplint.report.sarif.MOST_RESULTS", 2)
    verdicts = (Verdict.NOTE, Verdict.CONFIRMED, Verdict.LATENT)
    results = tuple(Result("WL101", "n", v, "m", Location("a.py", i + 1)) for i, v in enumerate(verdicts))
    run = load(render("sarif", Report(results), context))["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error", "warning"]
    assert run["properties"] == {"left_out": 1}


def test_no_more_bytes_than_github_takes(context, monkeypatch):
    context = dataclasses.replace(context, rules={})
    words = random.Random(1)
    results = tuple(
        Result("WL101", "n", Verdict.LATENT, f"{words.random()} {words.random()}", Location("a.py", i + 1))
        for i in range(400)
    )
    monkeypatch.setattr("warplint.report.sarif.MOST_BYTES", 12_000)
    text = render("sarif", Report(results), context)
    run = load(text)["runs"][0]
    assert len(gzip.compress(text.encode())) <= 12_000
    assert 50 < len(run["results"]) == 400 - run["properties"]["left_out"]
