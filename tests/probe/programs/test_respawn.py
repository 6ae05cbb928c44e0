"""A program that waits for a thread of its own: every evaluation runs it from its beginning."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import run, write

pytestmark = pytest.mark.probe

WORKER = """
import queue
import threading

asked, answered = queue.Queue(), queue.Queue()

def work():
    while True:
        answered.put(asked.get() + 1.0)

threading.Thread(target=work, daemon=True).start()

x = array([0.5, 1.0])
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        asked.put(1.0)
        wp.launch(misfit, 2, [y, answered.get()], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - {factor} * x.grad.numpy())
    {housekeeping}
"""


def test_a_right_program_is_measured_in_runs_from_its_beginning(tmp_path: Path) -> None:
    told = run(write(tmp_path, WORKER.format(factor=0.05, housekeeping="tape.zero()")))
    assert told.outcomes == {"x": ["agrees", "agrees"]}
    assert told.of("finished")[0]["substitutions"] == [
        "run from its beginning for every evaluation: forks of it hang"
    ]


def test_a_wrong_program_is_called_wrong_all_the_same(tmp_path: Path) -> None:
    told = run(write(tmp_path, WORKER.format(factor=0.05, housekeeping="pass")))
    assert told.outcomes == {"x": ["agrees", "differs"]}
