"""`--shard` and `warplint merge`: the parts together are the report of one process."""

from __future__ import annotations

import json
import shutil

import pytest
from cli_fakes import FINDING, TRAIN, result

from warplint.model import Finding, Location, ProgramRow, ProgramStatus, Result, Verdict

HELPER = """import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[wp.tid()] = x[wp.tid()] * x[wp.tid()]


@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])


def record(x, loss, tracked):
    tape = wp.Tape()
    with tape:
        y = wp.zeros(x.shape[0], dtype=float, requires_grad=tracked)
        wp.launch(square, dim=x.shape[0], inputs=[x], outputs=[y])
        wp.launch(total, dim=x.shape[0], inputs=[y], outputs=[loss])
    return tape
"""

PROGRAM = """import warp as wp

from helper import record

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
for step in range(1):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = record(x, loss, tracked=TRACKED)
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * tape.gradients[x].numpy())
    tape.zero()  # warplint: ignore[WL104]
"""


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Two programs that share a helper; in one of them its array is tracked."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper.py").write_text(HELPER)
    for name, tracked in (("a", "False"), ("b", "True")):
        (tmp_path / f"{name}.py").write_text(PROGRAM.replace("TRACKED", tracked))
    return tmp_path


@pytest.mark.probe
def test_shards_and_jobs_give_the_bytes_of_a_single_process(two, warplint):
    whole = warplint("--output", "json=out/whole.json", "--output", "sarif=out/whole.sarif")
    assert whole.status == 1
    jobs = warplint("--no-cache", "--jobs", "2", "--format", "json")
    for n in (1, 2):
        outputs = ("--output", f"json=out/{n}.json", "--output", f"sarif=out/{n}.sarif")
        warplint("--shard", f"{n}/2", *outputs)
    json_report, sarif_report = ((two / "out" / f"whole.{kind}").read_text() for kind in ("json", "sarif"))
    assert [row["status"] for row in json.loads(json_report)["programs"]] == ["wrong", "verified"]
    assert jobs.out == json_report
    merged = warplint("merge", "out/2.json", "out/1.json")
    assert (merged.status, merged.err, merged.out) == (1, "", json_report)
    assert warplint("merge", "out/1.sarif", "out/2.sarif").out == sarif_report
    # The records of a json report give every other report, too.
    assert warplint("merge", "out/1.json", "out/2.json", "--format", "sarif").out == sarif_report
    assert warplint("merge", "out/1.json", "out/2.json", "--format", "text").out == whole.out
    # Where the sources are not at hand, the parts still hold the hashes of lines.
    elsewhere = two / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    for n in (1, 2):
        shutil.copy(two / "out" / f"{n}.sarif", elsewhere)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(elsewhere)
        assert warplint("merge", "1.sarif", "2.sarif").out == sarif_report


@pytest.fixture
def shards(project, stages, warplint, monkeypatch):
    """Shards of two programs of which a stand-in says what it is told."""
    (project / "other.py").write_text(TRAIN)
    said: dict[str, list[Result]] = {"train.py": [], "other.py": []}
    status = {"train.py": ProgramStatus.VERIFIED, "other.py": ProgramStatus.VERIFIED}

    def probe(programs, findings, settings, progress, *more):
        stages.rows = tuple(ProgramRow(p.file, (), "py", "1.19.0", "cpu", status[p.file]) for p in programs)
        stages.results = tuple(r for p in programs for r in said[p.file])
        return stages.probe(programs, findings, settings, progress)

    monkeypatch.setattr("warplint.cli.stages.probe", probe)

    def both(*options: str):
        return [
            warplint("--shard", f"{n}/2", "--format", "json", "--output-file", f"{n}.json", *options)
            for n in (1, 2)
        ]

    both.said = said
    both.status = status
    return both


def merged(warplint, *options: str):
    run = warplint("merge", "1.json", "2.json", *options)
    return run, [(item["rule"], item["verdict"]) for item in json.loads(run.out)["results"]]


def test_a_program_is_run_by_one_shard(shards, stages):
    shards()
    assert [[p.file for p in call["programs"]] for call in stages.probed] == [["other.py"], ["train.py"]]
    # A finding that only another shard's program can decide is that shard's.
    assert [call["findings"] for call in stages.probed] == [[], [FINDING]]


def test_options_of_the_call_count_for_the_merge(shards, warplint):
    shards.said["train.py"] = [result(Verdict.LATENT)]
    shards()
    assert merged(warplint) == (merged(warplint)[0], [("WL103", "latent")])
    assert merged(warplint)[0].status == 0
    assert merged(warplint, "--strict")[0].status == 1
    assert merged(warplint, "--strict", "--exit-zero")[0].status == 0
    shards("--strict")
    assert merged(warplint)[0].status == 1
    shards.said["train.py"] = []
    shards.status["train.py"] = ProgramStatus.BLOCKED
    shards("--strict")
    assert merged(warplint)[0].status == 1
    shards("--strict", "--exit-zero")
    assert merged(warplint)[0].status == 0


def test_dismissed_findings_are_kept_for_the_merge_only(shards, warplint):
    shards.said["train.py"] = [result(Verdict.DISMISSED)]
    shards()
    assert merged(warplint)[1] == []
    shards("--show-dismissed")
    assert merged(warplint)[1] == [("WL103", "dismissed")]
    assert "WL103" not in warplint("--shard", "2/2").out


def test_a_comment_that_one_shard_needs_is_used(shards, warplint, project):
    text = TRAIN.replace("tape.backward(loss)", "tape.backward(loss)  # warplint: ignore[WL901]")
    (project / "train.py").write_text(text)
    place = Location("train.py", 9, 5)
    shards()
    assert merged(warplint)[1] == [("WL001", "note")]
    shards.said["train.py"] = [Result("WL901", "", Verdict.CONFIRMED, "m", place, program="train.py")]
    shards()
    assert merged(warplint)[1] == []


def test_whole_reports_of_different_calls(project, stages, warplint):
    (project / "other.py").write_text(TRAIN)
    stages.findings = (FINDING, Finding("WL103", FINDING.message, Location("other.py", 7, 13)))
    for name in ("train", "other"):
        for kind in ("json", "sarif"):
            warplint("--no-probe", f"{name}.py", "--format", kind, "--output-file", f"{name}.{kind}")
    run = warplint("merge", "train.sarif", "other.sarif")
    (only,) = json.loads(run.out)["runs"]
    uris = [item["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for item in only["results"]]
    assert uris == ["other.py", "train.py"]
    assert run.status == 1  # WL103 is precise enough to fail a run that only reads
    assert warplint("merge", "train.json", "train.json").out == (project / "train.json").read_text()
    warplint("merge", "train.json", "other.json", "--output-file", "both.json")
    assert len(json.loads((project / "both.json").read_text())["results"]) == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("1.json",), "shard 2 of 2 is missing"),
        (("1.json", "1.json"), "1.json and 1.json are both shard 1"),
        (("1.json", "whole.json"), "1.json is a shard and whole.json is not"),
        (("1.json", "strict.json"), "1.json and strict.json are shards of different calls"),
        (("1.json", "1.sarif"), "1.json is json and 1.sarif is sarif"),
        (("1.json", "gone.json"), "cannot read gone.json: no such file or directory"),
        (("train.py",), "train.py is no json or sarif report of warplint"),
        (("empty.json",), "empty.json is no json or sarif report of warplint"),
        (("foreign.sarif",), "foreign.sarif is no json or sarif report of warplint"),
        (("old.json",), "old.json was written by warplint 0.0.1; this is VERSION"),
        (
            ("1.sarif", "--format", "json"),
            "--format: SARIF has no programs; only reports in json merge into json",
        ),
        ((), "missing argument 'FILES...'"),
    ],
)
def test_what_cannot_be_merged(project, stages, warplint, names, message):
    from warplint import __version__

    shard = ("--no-probe", "--shard")
    warplint(*shard, "1/2", "--output", "json=1.json", "--output", "sarif=1.sarif")
    warplint(*shard, "2/2", "--strict", "--output", "json=strict.json")
    warplint("--no-probe", "--output", "json=whole.json")
    whole = json.loads((project / "whole.json").read_text())
    (project / "old.json").write_text(json.dumps({**whole, "warplint": "0.0.1"}))
    (project / "empty.json").write_text("[]")
    foreign = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "ruff", "version": __version__}}}]}
    (project / "foreign.sarif").write_text(json.dumps(foreign))
    run = warplint("merge", *names)
    assert run.status == 2
    assert run.err == f"warplint: error: {message.replace('VERSION', __version__)}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2", "--shard: '2' is not of the form INDEX/COUNT, for example 1/4"),
        ("a/b", "--shard: 'a/b' is not of the form INDEX/COUNT, for example 1/4"),
        ("0/2", "--shard: there is no shard 0 of 2; they are numbered from 1"),
        ("3/2", "--shard: there is no shard 3 of 2; they are numbered from 1"),
    ],
)
def test_no_such_shard(project, stages, warplint, text, message):
    run = warplint("--shard", text)
    assert (run.status, run.err) == (2, f"warplint: error: {message}\n")


def test_a_shard_without_a_program_is_quiet(project, stages, warplint):
    stages.findings = ()
    run = warplint("--shard", "2/2")
    assert (run.status, run.err) == (0, "")
    assert warplint("--shard", "2/2", "--list-programs").out == "train.py  not run: another shard runs it\n"
