"""What the probe's hooks add to a launch, in time and in memory.

``python tests/benchmarks/hook_cost.py``: the same launches on a tape without hooks, under the
hooks with nobody watching, and watched by each observer; the best of several rounds of one
process each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measuring import Row

RUNTIME = Path(__file__).resolve().parents[2] / "warplint" / "probe" / "runtime"
KEPT = 16.0
"""Bytes a launch: memory comes in pages, and nothing is to be kept."""
OBSERVERS = ("none", "scout", "gradient", "objective")

BODY = """\
import os, time
import warp as wp

@wp.kernel
def product(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), s: float):
    i = wp.tid()
    c[i] = a[i] * b[i] * s

a = wp.ones(8, dtype=float, requires_grad=True)
b = wp.ones(8, dtype=float, requires_grad=True)
c = wp.zeros(8, dtype=float, requires_grad=True)
wp.launch(product, 8, inputs=[a, b, c, 1.0])
COUNT = 5000
def resident():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
best, sizes = 1e9, []
with wp.Tape() as tape:
    for round in range(5):
        start = time.process_time()
        for _ in range(COUNT):
            wp.launch(product, 8, inputs=[a, b, c, 1.0])
        best = min(best, (time.process_time() - start) / COUNT)
        sizes.append(resident())
print(best * 1e6, (sizes[-1] - sizes[1]) / (3 * COUNT), flush=True)
"""
DRIVER = """\
import os, sys, time
observer, runtime, body = sys.argv[1:4]
if observer == "plain":
    exec(compile(open(body).read(), body, "exec"))
    sys.exit()
sys.path.insert(0, runtime)
import bootstrap
session = bootstrap.load("session")
package = session.__name__.rpartition(".")[0]
module = lambda name: sys.modules[package + "." + name]
folder = os.path.dirname(body)
task = {"program": body, "directory": folder, "root": folder, "arguments": [], "seconds": 300}
running = session.Session(task, lambda message: None, time.monotonic())
running.prepare()
import warp as wp
class Reporter:
    def leave(self, value):
        raise SystemExit
scout, episodes = module("scout"), module("episodes")
episode = module("structure").Episode(family=(), serial=(), start=(), start_total=0, leaf=True, label="a",
                        place=("", 0), shape=(8,), dtype="float")
if observer == "scout":
    running.stream.observer = scout.Scout(
        running.stream, Reporter(), seconds=100, partial=folder + "/partial", events=10**9)
if observer == "gradient":
    running.stream.observer = episodes.GradientChild(episode, wp.zeros(8, requires_grad=True), Reporter())
if observer == "objective":
    running.stream.observer = episodes.ObjectiveChild(
        episode, wp.zeros(8, requires_grad=True), Reporter(), [], [True])
module("program").run(body, [], folder)
"""


def measure(observer: str, folder: Path) -> tuple[float, float]:
    """Microseconds and bytes of growth a launch."""
    (folder / "body.py").write_text(BODY)
    (folder / "driver.py").write_text(DRIVER)
    words = [sys.executable, str(folder / "driver.py"), observer, str(RUNTIME), str(folder / "body.py")]
    environment = {**os.environ, "WARP_CACHE_PATH": str(folder / "kernels"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.count(".") and len(line.split()) == 2)
    time, memory = line.split()
    return float(time), float(memory)


def rows(folder: Path, rounds: int = 3) -> Iterator[Row]:
    def best(observer: str) -> tuple[float, float]:
        found = [measure(observer, folder) for _ in range(rounds)]
        return min(t for t, _ in found), min(m for _, m in found)

    plain, plain_bytes = best("plain")
    yield Row("a launch on a tape, no hooks", plain, "us", None, f"{plain_bytes:.0f} bytes kept by the tape")
    for observer in OBSERVERS:
        time, memory = best(observer)
        yield Row(f"hooks add to a launch, observer {observer}", time - plain, "us", 50.0)
        kept = max(memory - plain_bytes, 0.0)
        yield Row(f"hooks keep of each launch, observer {observer}", kept, "bytes", KEPT)


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(Path(folder)):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
