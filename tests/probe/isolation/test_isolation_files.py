"""Nothing in the user's tree changes, and what the program writes goes with the scratch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from isolation_support import ALL, NO_NAMESPACES, Project, needs_landlock

TRY = """
import os, shutil, sys
def attempt(name, action):
    try:
        action()
        print(name, 'worked')
    except OSError as error:
        print(name, 'refused')
original = os.environ['ORIGINAL']
"""

CONFINED = pytest.mark.parametrize("layers", [ALL, NO_NAMESPACES], ids=["all", "no-namespaces"])


def test_relative_reads_and_writes(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        from pathlib import Path
        import tempfile
        assert Path('data/input.txt').read_text() == 'precious\\n'
        Path('data/input.txt').write_text('changed')
        Path(__file__).with_name('result.txt').write_text('result')
        Path('data/input.txt').rename('moved.txt')
        Path('helper.py').unlink()
        with tempfile.NamedTemporaryFile() as stream:
            stream.write(b'1')
        print('done')
    """
    assert project.run(program, without=layers).tail == "done\n"


def test_removal_beside_the_program(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os, shutil
        os.chdir(os.path.dirname(os.path.abspath(__file__)))
        shutil.rmtree('.', ignore_errors=True)
        print(os.listdir('.'))
    """
    assert project.run(program, without=layers).tail == "[]\n"


@needs_landlock
@CONFINED
def test_removal_of_the_original(project: Project, layers: tuple[str, ...]) -> None:
    program = (
        TRY
        + """
os.chdir(original)
shutil.rmtree('.', ignore_errors=True)
print(sorted(os.listdir('.')))
"""
    )
    outcome = project.run(program, without=layers)
    assert outcome.tail == "['data', 'helper.py', 'program.py', 'pyproject.toml']\n"
    assert "writes confined by landlock" in outcome.confined


@needs_landlock
@CONFINED
def test_absolute_writes(project: Project, tmp_path: Path, layers: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "read.txt").write_text("readable")
    project.extra["HOME"] = str(home)
    program = (
        TRY
        + """
home = os.path.expanduser('~')
os.symlink(original, 'link')
os.link('helper.py', 'hard.py')
attempt('home', lambda: open(home + '/new', 'w'))
attempt('new', lambda: open(original + '/new', 'w'))
attempt('append', lambda: open(original + '/helper.py', 'a'))
attempt('truncate', lambda: os.truncate(original + '/helper.py', 0))
attempt('unlink', lambda: os.unlink(original + '/helper.py'))
attempt('rename', lambda: os.rename(original + '/helper.py', original + '/x.py'))
attempt('move out', lambda: os.rename(original + '/helper.py', 'x.py'))
attempt('move in', lambda: os.rename('hard.py', original + '/hard.py'))
attempt('mkdir', lambda: os.mkdir(original + '/d'))
attempt('symlink', lambda: os.symlink('/', original + '/s'))
attempt('through link', lambda: open('link/new', 'w'))
attempt('hard link', lambda: (os.link(original + '/helper.py', 'own.py'), open('own.py', 'a')))
attempt('shm', lambda: open('/dev/disk-of-mine', 'w'))
print(open(home + '/read.txt').read())
open(os.devnull, 'w').write('x')
"""
    )
    outcome = project.run(program, without=layers)
    *lines, read = outcome.tail.splitlines()
    assert read == "readable"
    assert len(lines) == 13
    assert all(line.endswith("refused") for line in lines), lines
    assert sorted(os.listdir(home)) == ["read.txt"]


def test_attributes_with_read_only_mounts(project: Project) -> None:
    program = (
        TRY
        + """
attempt('chmod', lambda: os.chmod(original + '/helper.py', 0o777))
attempt('utime', lambda: os.utime(original + '/helper.py', (0, 0)))
"""
    )
    project.program.write_text(program)
    outcome = project.run("print('which layers?')")
    if "writes confined by read-only mounts" not in outcome.confined:
        pytest.skip("the system grants no mount namespace")
    assert project.run(program).tail == "chmod refused\nutime refused\n"


def test_kernel_cache_is_writable_and_stays(
    project: Project, tmp_path: Path, layers: tuple[str, ...]
) -> None:
    program = """
        import os
        cache = os.environ['WARP_CACHE_PATH']
        os.mkdir(cache + '/building')
        open(cache + '/building/kernel.o', 'w').write('o')
        os.rename(cache + '/building', cache + '/done')
    """
    assert project.run(program, without=layers).kind == "finished"
    assert (tmp_path / "cache/warplint/warp-kernels/done/kernel.o").read_text() == "o"


@needs_landlock
@CONFINED
def test_shared_memory_leaves_nothing(project: Project, layers: tuple[str, ...]) -> None:
    name = f"/dev/shm/warplint-{project.mark}"
    program = f"""
        import multiprocessing
        try:
            lock = multiprocessing.Lock()
            open({name!r}, 'w')
        except OSError:
            pass
    """
    assert project.run(program, without=layers).kind == "finished"
    assert not os.path.exists(name)


def test_hostile_scratch_is_removed(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os
        os.makedirs('locked/inner')
        open('locked/inner/file', 'w').close()
        os.symlink(os.environ['ORIGINAL'], 'locked/inner/link')
        os.chmod('locked/inner', 0)
        os.chmod('locked', 0)
        os.mkfifo('fifo')
        for _ in range(1500):
            os.mkdir('deep')
            os.chdir('deep')
    """
    assert project.run(program, without=layers).kind == "finished"
