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


def test_a_mesh_is_made_up(rows):
    assert rows["closest"]["tested"] >= 20
    assert not rows["closest"]["wrong"]


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


MADE = """
from typing import Any

import warp as wp


def make_map(func, dtype):
    @wp.kernel
    def folded(x: wp.array(dtype=dtype), n: int, y: wp.array(dtype=dtype)):
        i = wp.tid()
        s = dtype(1.0)
        for k in range(n):
            s = s * func(x[i + k])
        y[i] = s

    return {"folded": folded}


@wp.kernel
def generic_product(x: wp.array(dtype=Any), n: int, y: wp.array(dtype=Any)):
    i = wp.tid()
    p = x[i]
    for k in range(n):
        p = p * x[i + k]
    y[i] = p


@wp.kernel
def generic_sum(x: wp.array(dtype=Any), s: Any, y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] * s


@wp.struct
class Body:
    q: wp.array(dtype=wp.vec3)
    mass: float


@wp.struct
class World:
    body: Body
    mesh: wp.uint64
    gravity: wp.vec3


@wp.kernel
def touch(world: World, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    q = wp.mesh_query_point(world.mesh, x[i], 10.0)
    p = wp.vec3(x[i][0], 0.0, 0.0)
    if q.result:
        p[0] = p[0] * x[i][1]
        p[0] = p[0] * p[0]
    out[i] = p[0]


@wp.kernel
def blocks(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    t = wp.tile_load(a, shape=4, offset=i * 4)
    s = wp.tile_sum(t * t)
    v = wp.vec3(a[i], 1.0, 1.0)
    v[0] = v[0] * a[i]
    v[0] = v[0] * v[0]
    out[i] = v[0]
    wp.tile_store(out, s, offset=8 + i)


@wp.kernel
def looked_up(table: wp.uint64, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = wp.vec3(x[i], 0.0, 0.0)
    v[0] = v[0] * v[0]
    y[i] = v[0] + float(table)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The same of kernels that need more than arrays: factories, types, structs in structs, tiles."""
    directory = tmp_path_factory.mktemp("made")
    (directory / "operators.py").write_text(MADE, encoding="utf-8")
    settings = ProbeSettings(root=directory, python=sys.executable)
    interpreter = choose(directory / "operators.py", settings.python, directory)
    names = ["folded", "generic_product", "generic_sum", "touch", "blocks", "looked_up"]
    facts, _, _ = run_program(
        Program("operators.py"),
        (),
        interpreter,
        settings,
        200.0,
        lambda event: None,
        library={"kernels": names, "functions": False},
    )
    assert facts.blocked is None
    return facts


@pytest.mark.parametrize(
    ("name", "repair"),
    [
        ("folded", "unrolled"),
        ("generic_product", "unrolled"),
        ("touch", "components"),
        ("blocks", "components"),
    ],
)
def test_what_a_kernel_needs_is_made_up(name, repair, made):
    (row,) = (row for row in made.launch_tests if row["kernel"] == name)
    assert row["wrong"]
    assert [r["what"] for r in row["repairs"]] == [repair]


def test_a_right_generic_kernel_passes(made):
    (row,) = (row for row in made.launch_tests if row["kernel"] == "generic_sum")
    assert (row["wrong"], row["tested"] >= 20) == (0, True)


def test_what_cannot_be_made_up_is_told(made):
    assert made.untried == {"looked_up": "it takes a handle of an unknown kind, which cannot be made up"}


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
