"""Standard input: a buffer that an editor or a hook has not saved."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

BAD = """import warp as wp

from helper import double


def train(x, loss):
    with wp.Tape() as tape:
        y = wp.zeros(4, dtype=float)
        wp.launch(double, dim=4, inputs=[x], outputs=[y])
        wp.launch(double, dim=4, inputs=[y], outputs=[loss])
    tape.backward(loss)


if __name__ == "__main__":
    train(wp.zeros(4, dtype=float, requires_grad=True), wp.zeros(4, dtype=float, requires_grad=True))
"""

HELPER = """import warp as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[wp.tid()] = 2.0 * x[wp.tid()]
"""


@pytest.fixture
def typed(tmp_path, monkeypatch, warplint):
    """Check a text as if it were typed; the project around it holds the helper only."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "helper.py").write_text(HELPER)
    monkeypatch.chdir(tmp_path)

    def check(text: str | bytes, *arguments: str) -> SimpleNamespace:
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        return warplint(*arguments)

    return check


def places(run) -> list[str]:
    found = json.loads(run.out)["results"]
    return [f"{item['location']['file']}:{item['location']['line']} {item['rule']}" for item in found]


def test_a_buffer_is_checked_in_its_place(typed):
    for arguments in (("-", "--stdin-filename", "train.py"), ("--stdin-filename", "train.py")):
        run = typed(BAD, *arguments, "--format", "json")
        assert places(run) == ["train.py:8 WL201"]
        assert (run.status, run.err) == (0, "")
        assert typed(BAD, *arguments, "--strict").status == 1


def test_what_lies_on_the_disk_does_not_count(typed, tmp_path):
    (tmp_path / "train.py").write_text("import warp\n")
    assert places(typed(BAD, "--stdin-filename", "train.py", "--format", "json")) == ["train.py:8 WL201"]
    (tmp_path / "train.py").write_text(BAD)
    right = BAD.replace("dtype=float)\n        wp", "dtype=float, requires_grad=True)\n        wp")
    assert places(typed(right, "--stdin-filename", "train.py", "--format", "json")) == []


def test_the_report_shows_the_buffer(typed):
    assert "        y = wp.zeros(4, dtype=float)\n" in typed(BAD, "--stdin-filename", "train.py").out


def test_without_a_name(typed):
    assert places(typed(BAD, "-", "--format", "json")) == ["<stdin>:8 WL201"]


def test_only_the_buffer_is_reported(typed, tmp_path):
    (tmp_path / "helper.py").write_text(BAD.replace("from helper import double\n", HELPER))
    run = typed("import warp as wp\nimport helper\nhelper.train(wp.zeros(4), wp.zeros(4))\n", "-")
    assert run.out.startswith("nothing found in 1 file")


def test_configuration_of_the_place(typed, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "warplint.toml").write_text('[per-file-ignores]\n"train.py" = ["WL201"]\n')
    text = ("--stdin-filename", "sub/train.py", "--format", "json")
    assert places(typed(BAD, *text)) == []
    (tmp_path / "sub" / "warplint.toml").write_text('exclude = ["train.py"]\n')
    assert places(typed(BAD, *text)) == []
    (tmp_path / "sub" / "warplint.toml").unlink()
    (tmp_path / "sub" / "helper.py").write_text(HELPER)
    assert places(typed(BAD, *text)) == ["sub/train.py:8 WL201"]


def test_suppressions(typed):
    hidden = BAD.replace(
        "y = wp.zeros(4, dtype=float)", "y = wp.zeros(4, dtype=float)  # warplint: ignore[WL201]"
    )
    assert places(typed(hidden, "-", "--format", "json")) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"import warp\ndef (:\n", "this file was not checked: syntax error (line 2): "),
        (b"import warp\n# caf\xe9\n", "this file was not checked: not UTF-8 (line 2)"),
    ],
)
def test_a_buffer_that_does_not_parse(typed, data, message):
    run = typed(data, "-")
    assert run.status == 1
    assert message in run.out


def test_nothing_on_standard_input_is_clean(typed):
    run = typed("", "-")
    assert (run.status, run.out) == (0, "nothing found in 1 file; nothing was run (--no-probe)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("-", "helper.py"),
            "standard input is checked alone: leave out the PATHS, or - and --stdin-filename",
        ),
        (
            ("helper.py", "--stdin-filename", "helper.py"),
            "standard input is checked alone: leave out the PATHS, or - and --stdin-filename",
        ),
        (("-", "--probe"), "--probe: standard input is only read, never run"),
        (("-", "--entry", "a.py"), "--entry: standard input is only read, never run"),
        (("-", "--fix"), "standard input cannot be fixed: its program is not run"),
        (("-", "--shard", "1/2"), "--shard: standard input is only read, never run"),
    ],
)
def test_mistakes(typed, arguments, message):
    run = typed(BAD, *arguments)
    assert (run.status, run.out, run.err) == (2, "", f"warplint: error: {message}\n")


def test_standard_input_that_cannot_be_read(tmp_path):
    command = f"{sys.executable} -c 'from warplint.cli.main import run; run()' - 0> out"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "warplint: error: cannot read standard input: bad file descriptor\n"


def test_standard_input_that_is_closed(typed, monkeypatch, warplint):
    monkeypatch.setattr("sys.stdin", None)
    run = warplint("-")
    assert (run.status, run.err) == (2, "warplint: error: cannot read standard input: it is closed\n")


COPIED = """import warp as wp

from helper import double


@wp.kernel
def add(y: wp.array(dtype=float), z: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[wp.tid()] = y[wp.tid()] + z[wp.tid()]


x, y = (wp.zeros(4, dtype=float, requires_grad=True) for _ in range(2))
loss = wp.zeros(4, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(double, dim=4, inputs=[x], outputs=[y])
    z = wp.clone(y)
    wp.launch(add, dim=4, inputs=[y, z], outputs=[loss])
tape.backward(loss)
"""


def test_a_buffer_has_the_warp_of_its_project(typed, tmp_path, monkeypatch):
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    told = {}
    for version in ("1.16.0", "1.17.0"):
        (tmp_path / "requirements.txt").write_text(f"warp-lang=={version}\n")
        run = typed(COPIED, "--stdin-filename", "fit.py", "--format", "json")
        told[version] = [place for place in places(run) if place.endswith("WL109")]
    assert told == {"1.16.0": ["fit.py:15 WL109"], "1.17.0": []}
