"""Copies of a parameter that later iterations go on with: targets and anchors are constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from probe_programs import run, write

pytestmark = pytest.mark.probe

PROGRAM = """
@wp.kernel
def predict(s: wp.array(dtype=float), w: wp.array(dtype=float), v: wp.array(dtype=float)):
    i = wp.tid()
    v[i] = w[0] * s[i] + w[1] * w[0]

@wp.kernel
def compare(v: wp.array(dtype=float), other: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (v[i] - 0.9 * other[i] - 0.2) * (v[i] - 0.9 * other[i] - 0.2))

w, s = array([0.5, 0.4]), wp.array([0.1, 0.7, 1.0], dtype=float)

def prediction(w, s, grad):
    v = zeros(3, grad)
    wp.launch(predict, 3, [s, w], [v])
    return v

anchor = {copy}
for it in range(5):
    if it {turn}:
        anchor = {copy}
    other = prediction(anchor, s, False)
    loss = zeros(1)
    with wp.Tape() as tape:
        wp.launch(compare, 3, [prediction(w, s, True), other], [loss])
    tape.backward(loss)
    w.assign(w.numpy() - 0.02 * w.grad.numpy())
    tape.zero()
"""

BY_COPY, BY_HOST = "wp.clone(w, requires_grad=False)", "wp.array(w.numpy(), dtype=float)"
NOW_AND_THEN, ALWAYS = "== 3", ">= 0"


def causes(tmp_path: Path, copy: str, turn: str) -> list[dict[str, Any]]:
    told = run(write(tmp_path, PROGRAM.format(copy=copy, turn=turn)))
    assert told.outcomes["w"][0] == "differs"
    (first, *_) = told.of("attribution")
    assert first["resolved"], "with the copy held or recorded, the rest of the gradient is right"
    return [c for c in first["confirmed"] if c["kind_of_cause"] in ("not-recorded", "host-read")]


def test_a_copy_that_later_iterations_use_is_a_constant(tmp_path: Path) -> None:
    found = causes(tmp_path, BY_COPY, NOW_AND_THEN)
    assert len(found) == 2, "the copy, and the launch that the tape sees with the parameter itself"
    assert all(c["running"] for c in found)


def test_so_is_one_through_the_host(tmp_path: Path) -> None:
    (found,) = causes(tmp_path, BY_HOST, NOW_AND_THEN)
    assert found["lagging"]


def test_a_copy_made_anew_in_every_iteration_is_none(tmp_path: Path) -> None:
    assert not any(c["running"] for c in causes(tmp_path, BY_COPY, ALWAYS))
