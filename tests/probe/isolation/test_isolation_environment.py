"""What the program sees of the caller's environment."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest
from isolation_support import HERE, Project, linux, needs_landlock

from warplint.probe import sandbox
from warplint.probe.scratch import Scratch

SECRETS = {
    "GITHUB_TOKEN": "ghs_1",
    "GH_HOST": "h",
    "MY_SECRET": "s",
    "DB_PASSWORD": "p",
    "OPENAI_API_KEY": "k",
    "APIKEY": "k",
    "AWS_REGION": "r",
    "AZURE_X": "z",
    "GCP_PROJECT": "g",
    "GOOGLE_APPLICATION_CREDENTIALS": "/c.json",
    "SSH_AUTH_SOCK": "/s",
    "DOCKER_HOST": "d",
    "SIGNING_PRIVATE": "x",
    "MIRROR": "https://user:hunter2@example.org/simple",
    "DISPLAY": ":0",
    "WAYLAND_DISPLAY": "w",
    "PYTHONUNBUFFERED": "1",
}


@pytest.fixture
def environment(project: Project, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SIMULATION_STEPS", "12")
    monkeypatch.setenv("HOMEPAGE", "https://example.org/a")
    with Scratch(project.root, project.root) as scratch:
        return sandbox.program_environment(scratch, HERE)


def test_secrets_are_dropped(environment: dict[str, str]) -> None:
    assert not set(SECRETS) & set(environment)
    assert not set(SECRETS.values()) & set(environment.values()) - {"1"}


def test_the_rest_is_kept(environment: dict[str, str]) -> None:
    assert environment["SIMULATION_STEPS"] == "12"
    assert environment["HOMEPAGE"] == "https://example.org/a"
    assert environment["PATH"] == os.environ["PATH"]


def test_headless_single_threaded_repeatable(environment: dict[str, str]) -> None:
    wanted = {
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "QT_QPA_PLATFORM": "offscreen",
    }
    assert wanted.items() <= environment.items()


def test_bytecode_goes_nowhere_or_to_the_scratch(project: Project) -> None:
    with Scratch(project.root, project.root) as scratch:
        compiled = sandbox.program_environment(scratch, HERE)
        assert compiled["PYTHONDONTWRITEBYTECODE"] == "1"
        assert "PYTHONPYCACHEPREFIX" not in compiled
        source = sandbox.program_environment(scratch, dataclasses.replace(HERE, has_bytecode=False))
        assert source["PYTHONPYCACHEPREFIX"] == str(scratch.pycache)
        assert "PYTHONDONTWRITEBYTECODE" not in source


def test_python_path_leads_into_the_copy(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(project.root / "data"), "/elsewhere"]))
    with Scratch(project.root, project.root) as scratch:
        paths = sandbox.program_environment(scratch, HERE)["PYTHONPATH"].split(os.pathsep)
        assert paths == [str(scratch.tree / "data"), "/elsewhere"]


@linux
@needs_landlock
@pytest.mark.parametrize("without", [(), ("namespaces",)], ids=["all", "no-namespaces"])
def test_secret_is_not_read_from_another_process(
    project: Project, monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...]
) -> None:
    project.extra["WARPLINT_PID"] = str(os.getpid())
    program = """
        import os
        for pid in (os.environ['WARPLINT_PID'], os.getppid()):
            try:
                print(len(open(f'/proc/{pid}/environ', 'rb').read()))
            except OSError as error:
                print('refused')
    """
    outcome = project.run(program, without=without)
    assert outcome.tail == "refused\nrefused\n"


@pytest.mark.parametrize("place", ["home", "project", "inside the project", "above the project"])
def test_kernel_cache_never_opens_the_users_files(
    project: Project, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    places = {
        "home": Path.home(),
        "project": project.root,
        "inside the project": project.root / "cache",
        "above the project": project.root.parent,
    }
    monkeypatch.setenv("WARP_CACHE_PATH", str(places[place]))
    with Scratch(project.root, project.root) as scratch:
        assert sandbox.kernel_cache(scratch).is_relative_to(scratch.directory)


def test_kernel_cache_of_the_caller(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "kernels"))
    with Scratch(project.root, project.root) as scratch:
        assert sandbox.kernel_cache(scratch) == tmp_path / "kernels"


def test_kernel_cache_that_cannot_be_made(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "file" / "kernels"))
    with Scratch(project.root, project.root) as scratch:
        assert sandbox.kernel_cache(scratch).is_relative_to(scratch.directory)


def test_supervisor_runs_on_python_39_syntax() -> None:
    import ast

    from warplint.probe.runtime import confine, processes, supervisor

    for module in (confine, processes, supervisor):
        ast.parse(Path(module.__file__).read_text(), feature_version=(3, 9))
    assert sys.version_info >= (3, 9)
