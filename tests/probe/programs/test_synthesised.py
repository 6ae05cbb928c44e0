"""Kernels and custom adjoints of a library that no program reaches, on arguments made up for them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from warplint.model import Program
from warplint.probe import ProbeSettings
from warplint.probe.interpreter import choose
from warplint.probe.session import run_program

pytestmark = pytest.mark.probe

LIBRARY = '''
"""Operators for whoever wants to differentiate through them."""

import warp as wp

FLOOR = 2.0


@wp.struct
class Pair:
    values: wp.array(dtype=wp.vec3)
    factor: float


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * x * adj_ret


@wp.func
def offset_length(v: wp.vec3, scale: float):
    return 1.0e6 + scale * wp.length(v)


@wp.func_grad(offset_length)
def adj_offset_length(v: wp.vec3, scale: float, adj_ret: float):
    wp.adjoint[v] += scale * wp.normalize(v) * adj_ret
    wp.adjoint[scale] += wp.length(v) * adj_ret


@wp.func
def hinge(x: float):
    y = 0.1 * x
    if x > FLOOR:
        y = x - 0.9 * FLOOR
    return y


@wp.func_grad(hinge)
def adj_hinge(x: float, adj_ret: float):
    wp.adjoint[x] += 0.1 * adj_ret


@wp.func
def safe_root(x: float):
    return wp.sqrt(wp.max(x, 0.0))


@wp.func_grad(safe_root)
def adj_safe_root(x: float, adj_ret: float):
    wp.adjoint[x] += 0.5 * adj_ret / wp.sqrt(wp.max(x, 1.0e-8))


@wp.func
def quantized(x: float):
    return wp.round(x)


@wp.func_grad(quantized)
def adj_quantized(x: float, adj_ret: float):
    wp.adjoint[x] += adj_ret


@wp.kernel
def product(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    p = float(1.0)
    for k in range(n):
        p = p * x[i + k]
    y[i] = p


@wp.kernel
def window(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for k in range(n):
        s += x[i + k]
    y[i] = s / float(n)


@wp.kernel
def scatter(pair: Pair, q: wp.array(dtype=wp.quat), to: wp.array(dtype=int), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[to[i]] = pair.factor * wp.quat_rotate(q[i], pair.values[i])


@wp.kernel
def springs(x: wp.array(dtype=wp.vec3), edges: wp.array2d(dtype=int), f: wp.array2d(dtype=wp.vec3)):
    i, k = wp.tid()
    d = x[edges[i, 1]] - x[edges[i, 0]]
    wp.atomic_add(f, edges[i, 0], k, d * (wp.length(d) - 0.3))


@wp.kernel
def every_other(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i // 2] = x[i] * x[i]


@wp.kernel
def closest(mesh: wp.uint64, x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = wp.mesh_eval_position(mesh, 0, x[i][0], x[i][1])
'''


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """What the runtime says of every kernel and custom adjoint of the library, by name."""
    directory = tmp_path_factory.mktemp("library")
    (directory / "operators.py").write_text(LIBRARY, encoding="utf-8")
    settings = ProbeSettings(root=directory, python=sys.executable)
    interpreter = choose(directory / "operators.py", settings.python, directory)
    kernels = ["product", "window", "scatter", "springs", "every_other", "closest"]
    facts, _, _ = run_program(
        Program("operators.py"),
        (),
        interpreter,
        settings,
        120.0,
        lambda event: None,
        library={"kernels": kernels, "functions": True},
    )
    assert facts.blocked is None
    found = {row["kernel"]: row for row in facts.launch_tests}
    return {**found, **{row["function"]: row for row in facts.function_tests}}


def test_a_loop_that_carries_a_value(rows):
    assert rows["product"]["wrong"]
    assert [repair["what"] for repair in rows["product"]["repairs"]] == ["unrolled"]


@pytest.mark.parametrize("name", ["window", "scatter", "springs"])
def test_a_right_kernel_passes(rows, name):
    assert rows[name]["tested"] >= 20
    assert not rows[name]["wrong"]


def test_what_threads_do_to_each_other_is_not_held_against_a_kernel(rows):
    assert not rows["every_other"]["wrong"]


def test_nothing_is_made_up_for_a_mesh(rows):
    assert "closest" not in rows


def test_a_wrong_factor(rows):
    row = rows["cube"]
    assert row["wrong"] > 100
    assert row["adjoint"] == pytest.approx(2 / 3 * row["derivative"], rel=1e-3)


def test_a_large_constant_does_not_hide_a_derivative(rows):
    row = rows["offset_length"]
    assert row["double"]
    assert row["tested"] > 500
    assert not row["wrong"]


def test_the_other_side_of_a_branch(rows):
    row = rows["hinge"]
    assert (row["adjoint"], row["derivative"]) == (pytest.approx(0.1), pytest.approx(1.0))


def test_a_limit_at_a_singular_point_is_meant(rows):
    assert not rows["safe_root"]["wrong"]


def test_a_derivative_for_steps_is_a_surrogate(rows):
    assert rows["quantized"]["surrogate"]


def test_a_library_gets_its_verdicts(tmp_path):
    text = LIBRARY[: LIBRARY.index("@wp.kernel\ndef window")]
    (tmp_path / "operators.py").write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-c",
        "from warplint.cli.main import run; run()",
        "check",
        ".",
        "--format",
        "json",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    results = json.loads(done.stdout)["results"]
    latent = {(r["rule"], r["location"]["line"]) for r in results if r["verdict"] == "latent"}
    lines = text.splitlines()
    assert latent == {
        ("WL402", lines.index("def adj_cube(x: float, adj_ret: float):") + 1),
        ("WL402", lines.index("def adj_hinge(x: float, adj_ret: float):") + 1),
        ("WL303", lines.index("        p = p * x[i + k]") + 1),
    }
    reasons = {r["reason"].split(": ")[0] for r in results if r["verdict"] == "latent"}
    assert reasons == {"synthesised-inputs"}
    (note,) = (r for r in results if r["verdict"] == "note")
    assert "surrogate" in note["message"]
    assert done.returncode == 0
