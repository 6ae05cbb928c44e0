"""Work in several processes: the same results in the same order, whatever happens to a process."""

from __future__ import annotations

import os
import signal

import pytest

from warplint.source.workers import run_all


def test_results_come_in_the_order_of_the_items():
    assert run_all(lambda n: n * n, 500, 3) == [n * n for n in range(500)]


def test_large_results_travel_whole():
    assert run_all(lambda n: bytes([n]) * 3_000_000, 4, 2) == [bytes([n]) * 3_000_000 for n in range(4)]


def test_the_work_is_shared():
    parent = os.getpid()
    seen = run_all(lambda n: os.getpid(), 50, 2)
    assert parent not in seen


@pytest.mark.parametrize("jobs", [1, 0])
def test_one_process_is_this_one(jobs):
    assert set(run_all(lambda n: os.getpid(), 5, jobs)) == {os.getpid()}


def test_what_a_process_leaves_undone_is_done_here():
    parent = os.getpid()

    def task(n: int) -> int:
        if n == 3 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return n + 1

    assert run_all(task, 8, 2) == list(range(1, 9))


def test_an_error_of_a_task_is_an_error_here():
    def task(n: int) -> int:
        if n == 2:
            raise KeyError("two")
        return n

    with pytest.raises(KeyError):
        run_all(task, 4, 2)


def test_no_process_is_left_behind():
    run_all(lambda n: n, 10, 3)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
