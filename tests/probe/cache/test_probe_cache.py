"""A program is probed again exactly when something its verdict depends on has changed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from warplint.model import Counterfactual, Finding, Location, ProbeRequest, Program
from warplint.probe import ProbeSettings, plan, probe
from warplint.probe.cache import VerdictCache, keepable, key_of
from warplint.probe.facts import Facts
from warplint.probe.interpreter import Interpreter

PYTHON = Interpreter("/project/bin/python", "3.11.0", "1.19.0", "2.0", "--python")
PROGRAM = Program("fit.py", ("--steps", "3"))


def facts(*, files: tuple[Path, ...] = (), listings: tuple[Path, ...] = (), **last: object) -> Facts:
    found = Facts()
    found.take({"type": "started", "warp": "1.19.0", "device": "cpu"})
    found.take({"type": "inputs", "files": [str(f) for f in files], "listings": [str(d) for d in listings]})
    found.take({"type": "finished", "forward_passes": 9, "substitutions": [], **last})
    return found


@pytest.fixture
def cache(tmp_path: Path) -> VerdictCache:
    return VerdictCache(tmp_path / "kept")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data.csv"
    file.write_text("1, 2, 3\n")
    return file


def test_what_was_told_comes_back(cache: VerdictCache, data: Path) -> None:
    run = facts(files=(data,))
    cache.put("k", run, PYTHON)
    assert cache.get("k") == run.told
    assert cache.get("other") is None


def test_a_changed_file_is_noticed(cache: VerdictCache, data: Path) -> None:
    cache.put("k", facts(files=(data,)), PYTHON)
    data.write_text("1, 2, 4\n")
    assert cache.get("k") is None


def test_a_checkout_that_only_touches_a_file_is_no_change(cache: VerdictCache, data: Path) -> None:
    cache.put("k", facts(files=(data,)), PYTHON)
    os.utime(data, (1, 1))
    assert cache.get("k") is not None


def test_a_file_that_was_looked_for_and_appears_is_noticed(cache: VerdictCache, tmp_path: Path) -> None:
    cache.put("k", facts(files=(tmp_path / "local.toml",)), PYTHON)
    assert cache.get("k") is not None
    (tmp_path / "local.toml").write_text("")
    assert cache.get("k") is None


def test_a_new_file_in_a_listed_directory_is_noticed(cache: VerdictCache, tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    frames.mkdir()
    cache.put("k", facts(listings=(frames,)), PYTHON)
    (frames / ".DS_Store").touch()
    assert cache.get("k") is not None
    (frames / "0001.png").touch()
    assert cache.get("k") is None


def test_an_upgraded_package_is_noticed(cache: VerdictCache, tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    (packages / "scipy-1.0.dist-info").mkdir(parents=True)
    module = packages / "scipy.py"
    module.touch()
    cache.put("k", facts(files=(module,)), replace(PYTHON, packages=(str(packages),)))
    assert cache.get("k") is not None
    (packages / "scipy-1.0.dist-info").rename(packages / "scipy-1.1.dist-info")
    assert cache.get("k") is None


@pytest.mark.parametrize("text", ['{"told": 3}', "[]", "null", "{", '{"told": [], "depends": {"files": 1}}'])
def test_a_damaged_entry_is_as_good_as_none(cache: VerdictCache, text: str) -> None:
    assert cache.directory is not None
    cache.directory.mkdir()
    (cache.directory / "k.json").write_text(text)
    assert cache.get("k") is None


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = VerdictCache(tmp_path / "file" / "kept")
    cache.put("k", facts(), PYTHON)
    assert cache.get("k") is None


@pytest.mark.parametrize(
    "problem",
    ["the time limit was reached", "timed out after 60 s", "a fork of the program hung (threads …)"],
)
def test_what_depended_on_the_clock_is_not_kept(problem: str) -> None:
    run = facts()
    assert keepable(run)
    run.take({"type": "measured", "structure": {}, "uncovered": [], "episodes": [{"problem": problem}]})
    assert not keepable(run)


def test_a_blocked_program_is_tried_again() -> None:
    run = facts()
    run.take({"type": "blocked", "reason": "No module named 'usd'"})
    assert not keepable(run)


def test_the_key_holds_what_is_known_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ProbeSettings(root=tmp_path)
    place = Location("fit.py", 3)
    finding = Finding("WL101", "…", place, request=ProbeRequest(Counterfactual.RESTORE_VALUES, (place,)))
    keys = [
        key_of(PROGRAM, [], PYTHON, settings),
        key_of(replace(PROGRAM, arguments=("--steps", "4")), [], PYTHON, settings),
        key_of(PROGRAM, [finding], PYTHON, settings),
        key_of(PROGRAM, [], replace(PYTHON, warp="1.18.0"), settings),
        key_of(PROGRAM, [], PYTHON, replace(settings, overrides=(("fit.N", "8"),))),
    ]
    assert len(set(keys)) == len(keys)
    monkeypatch.setenv("SHLVL", "7")
    assert key_of(PROGRAM, [], PYTHON, settings) == keys[0]
    monkeypatch.setenv("STEPS", "7")
    assert key_of(PROGRAM, [], PYTHON, settings) != keys[0]


FIT = """
import numpy as np
import warp as wp
from helper import target

@wp.kernel
def misfit(x: wp.array(dtype=float), t: float, loss: wp.array(dtype=float)):
    d = x[wp.tid()] - t
    wp.atomic_add(loss, 0, d * d)

x = wp.array(np.loadtxt("start.txt", dtype=np.float32), dtype=float, requires_grad=True)
for _ in range(2):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [x, target], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""


@pytest.mark.probe
def test_a_program_is_run_again_when_its_data_or_a_module_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLINT_CACHE_DIR", str(tmp_path / "kept"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "fit.py").write_text(FIT)
    (project / "helper.py").write_text("target = 2.0\n")
    (project / "start.txt").write_text("0.5\n1.5\n")
    runs = []
    really = plan.run_program
    monkeypatch.setattr(plan, "run_program", lambda *given: runs.append(1) or really(*given))

    def rows() -> object:
        settings = ProbeSettings(root=project, evidence=False)
        report = probe([Program("fit.py", closure=("fit.py", "helper.py"))], [], settings)
        return [(row.status.value, row.forward_passes) for row in report.programs], report.results

    first = rows()
    assert first[0][0][0] == "verified"
    assert rows() == first
    assert len(runs) == 1
    (project / "start.txt").write_text("0.5\n1.0\n")
    rows()
    assert len(runs) == 2
    (project / "helper.py").write_text("target = 1.0\n")
    rows()
    assert len(runs) == 3
    (project / "unrelated.py").write_text("")
    rows()
    assert len(runs) == 3
