"""What a fork would change if nobody looked: randomness, files, threads, output."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, run, write

pytestmark = pytest.mark.probe


def program(prepare: str, target: str) -> str:
    return f"""
import random
import threading
import time

x = array([0.5, 1.0])
{prepare}
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, {target}], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""


RANDOM = {
    "random": "random.random()",
    "numpy's global state": "float(np.random.rand())",
    "a generator seeded by the system in every iteration": "float(np.random.default_rng().random())",
    "a generator made before": "float(rng.random())",
}


@pytest.mark.parametrize("source", RANDOM)
def test_random_draws_are_the_same_in_every_fork(source: str, tmp_path: Path) -> None:
    body = program("rng = np.random.default_rng()", RANDOM[source])
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_a_data_stream_is_read_by_the_program_alone(tmp_path: Path) -> None:
    """Children share the parent's file offset unless they are given their own."""
    (tmp_path / "data.txt").write_text("".join(f"{i / 7:.9f}\n" for i in range(20_000)))
    prepare = """
import os
data = os.open("data.txt", os.O_RDONLY)
def draw():
    return sum(float(v) for v in os.read(data, 120).split()) / 1000.0
seen = []
"""
    body = program(prepare, "draw()") + (
        "    seen.append(os.lseek(data, 0, os.SEEK_CUR))\n"
        "    assert seen == [120 * (i + 1) for i in range(len(seen))]\n"
    )
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["agrees", "agrees"]}


def test_forks_leave_nothing_in_files_the_program_writes(tmp_path: Path) -> None:
    prepare = "log = open('log.txt', 'w', buffering=1)"
    body = program(prepare, "1.0") + (
        "    print('iteration', it, file=log)\n"
        "    assert open('log.txt').read() == ''.join(f'iteration {i}\\n' for i in range(it + 1))\n"
    )
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_a_thread_of_the_program_does_not_stop_the_probe(tmp_path: Path) -> None:
    prepare = """
def spin():
    while True:
        time.sleep(0.01)
threading.Thread(target=spin, daemon=True).start()
"""
    assert run(write(tmp_path, program(prepare, "1.0"))).outcomes == {"x": ["agrees", "agrees"]}


def test_an_adaptive_loop_may_take_other_turns_when_perturbed(tmp_path: Path) -> None:
    """Stops are named by call site and occurrence; the number of launches is free to change."""
    body = """
x = array([0.52, 1.04])
for it in range(3):
    loss = zeros(1)
    probe = x.numpy().copy()
    turns = 3 + int(np.floor(40.0 * probe[0]))
    scratch = zeros(2)
    for _ in range(turns):
        wp.launch(square, 2, [x, 0.1], [scratch])
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_a_program_that_differs_from_run_to_run_is_not_judged(tmp_path: Path) -> None:
    told = run(write(tmp_path, program("", "(time.time_ns() % 1_000_003) / 1_000_003.0")))
    assert all("nondeterministic" in e["outcome"] for e in told.episodes)


ENDINGS = {
    "raise ValueError('no data')": "the program raised ValueError: no data (program.py:{line})",
    "import sys; sys.exit(3)": "the program exited with status 3",
    "import sys; sys.exit('no display')": "the program exited with status 1: no display",
    "import ctypes; ctypes.string_at(0)": "the program was killed by SIGSEGV",
    "import os; os._exit(4)": "the program exited with status 4 before it reported",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_that_ends_early_says_how(ending: str, tmp_path: Path) -> None:
    told = run(write(tmp_path, f"\n{ending}\n"))
    reasons = [m["reason"] for m in told.of("blocked") + told.of("nothing")]
    line = KERNELS.count("\n") + 2
    assert [r.removeprefix("blocked: ") for r in reasons] == [ENDINGS[ending].format(line=line)]


def test_a_constant_is_overridden_for_the_probe_only(tmp_path: Path) -> None:
    body = (
        "\nTURNS = 4\nSTEP: float = 0.5\n"
        + program("", "1.0").replace("range(4)", "range(TURNS)")
        + ("if TURNS != 2 or STEP != 0.25:\n    raise SystemExit('not overridden')\n")
    )
    told = run(write(tmp_path, body), overrides={"__main__": {"TURNS": "1 + 1", "STEP": "0.25"}})
    assert told.outcomes == {"x": ["agrees", "agrees"]}
    assert told.of("finished")[0]["substitutions"] == ["__main__.TURNS = 1 + 1", "__main__.STEP = 0.25"]


def test_a_module_of_a_package_is_run_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "sizes.py").write_text("TURNS = 4\n")
    body = "\nfrom .sizes import TURNS\nimport sys\nRATE = 0\n"
    body += program("", "1.0").replace("range(4)", "range(TURNS)")
    body += "told = (__name__, __package__, RATE, sys.argv[0] == __file__)\n"
    body += "assert told == ('__main__', 'pkg', 7, True), told\n"
    overrides = {"train": {"RATE": "7"}, "pkg.sizes": {"TURNS": "2"}}
    told = run(write(tmp_path / "pkg", body, "train.py"), overrides=overrides, module="pkg.train")
    assert told.outcomes == {"x": ["agrees", "agrees"]}
    assert told.of("finished")[0]["unmet"] == []


def test_an_error_after_two_iterations_still_leaves_two_to_measure(tmp_path: Path) -> None:
    body = program("", "1.0") + "    if it == 1:\n        raise RuntimeError('diverged')\n"
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("while True:\n    pass\n", "did not come to an end"),
        ("import ctypes\nctypes.string_at(0)\n", "killed by SIGSEGV"),
        ("raise ValueError('after the fact')\n", "after the fact"),
    ],
)
def test_what_was_seen_before_a_program_went_wrong_is_measured(
    ending: str, said: str, tmp_path: Path
) -> None:
    told = run(write(tmp_path, program("", "1.0").replace("range(4)", "range(3)") + ending), seconds=40)
    assert set(told.outcomes["x"]) == {"agrees"}
    assert said in told.of("measured")[0]["structure"]["error"]


def test_a_constant_of_a_module_that_this_program_does_not_load_is_another_programs(tmp_path: Path) -> None:
    told = run(write(tmp_path, program("", "1.0")), overrides={"other": {"STEPS": "3"}})
    assert told.outcomes == {"x": ["agrees", "agrees"]}
    (finished,) = told.of("finished")
    assert (finished["unmet"], finished["substitutions"]) == (["other.STEPS"], [])


def test_a_constant_that_does_not_exist_is_not_overridden_in_silence(tmp_path: Path) -> None:
    told = run(write(tmp_path, program("", "1.0")), overrides={"__main__": {"STEPS": "3"}})
    assert [m["reason"] for m in told.of("blocked")] == [
        "--set __main__.STEPS: the program assigns no such module-level constant"
    ]
