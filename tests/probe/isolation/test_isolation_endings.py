"""However a program ends, or does not end, one clear outcome comes back."""

from __future__ import annotations

import dataclasses

import pytest
from isolation_support import QUICK, Project, linux

from warplint.probe.sandbox import blocked_reason

SHORT = dataclasses.replace(QUICK, seconds=1.0)


def test_normal_end(project: Project, layers: tuple[str, ...]) -> None:
    outcome = project.run("import helper\nprint('value', helper.VALUE)", without=layers)
    assert (outcome.kind, outcome.exit_status, outcome.tail) == ("finished", 0, "value 7\n")
    assert blocked_reason(outcome) == "ended before a gradient could be checked"


def test_exit_status(project: Project, layers: tuple[str, ...]) -> None:
    outcome = project.run("import sys\nsys.exit(3)", without=layers)
    assert (outcome.kind, outcome.exit_status) == ("exit", 3)
    assert blocked_reason(outcome) == "exited with status 3 before a gradient could be checked"


def test_exception(project: Project) -> None:
    outcome = project.run("raise ValueError('no \\x1b[31msuch mesh')")
    assert outcome.kind == "exit"
    assert blocked_reason(outcome) == "stopped with ValueError: no  [31msuch mesh"


def test_missing_module(project: Project) -> None:
    outcome = project.run("import no_such_module_at_all")
    assert "ModuleNotFoundError: No module named 'no_such_module_at_all'" in blocked_reason(outcome)


def test_endless_loop(project: Project, layers: tuple[str, ...]) -> None:
    outcome = project.run("while True: pass", limits=SHORT, without=layers)
    assert outcome.kind == "timeout"
    assert 0.9 < outcome.seconds < 5
    assert blocked_reason(outcome) == "timed out after 1 s"


def test_segmentation_fault(project: Project, layers: tuple[str, ...]) -> None:
    outcome = project.run("import ctypes\nctypes.string_at(8)", without=layers)
    assert (outcome.kind, outcome.signal) == ("signal", "SIGSEGV")
    assert blocked_reason(outcome) == "killed by SIGSEGV"


def test_abort(project: Project, layers: tuple[str, ...]) -> None:
    assert project.run("import os\nos.abort()", without=layers).signal == "SIGABRT"


def test_input_gives_end_of_file(project: Project) -> None:
    outcome = project.run("input('your name? ')")
    assert outcome.kind == "exit"
    assert "EOFError" in blocked_reason(outcome)


def test_deleted_working_directory(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os, shutil
        shutil.rmtree(os.getcwd())
        print(os.listdir('/tmp') is not None)
        os.getcwd()
    """
    outcome = project.run(program, without=layers)
    assert outcome.kind == "exit"
    assert "FileNotFoundError" in outcome.tail


def test_endless_output(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import os
        while True:
            os.write(1, b'x' * 65536)
    """
    outcome = project.run(program, limits=SHORT, without=layers)
    assert outcome.kind == "timeout"
    assert outcome.tail == "x" * 65536


def test_output_is_kept_to_its_end(project: Project) -> None:
    outcome = project.run("print('y' * 200_000)\nprint('the end')")
    assert outcome.kind == "finished"
    assert len(outcome.tail) == 65536
    assert outcome.tail.endswith("y\nthe end\n")


def test_threads_that_keep_running(project: Project) -> None:
    program = """
        import threading, time
        for _ in range(4):
            threading.Thread(target=lambda: time.sleep(60)).start()
    """
    assert project.run(program, limits=SHORT).kind == "timeout"


@linux
def test_ignored_signals(project: Project, layers: tuple[str, ...]) -> None:
    program = """
        import signal, time
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)
    """
    assert project.run(program, limits=SHORT, without=layers).kind == "timeout"


@linux
@pytest.mark.parametrize("children", [0, 3])
def test_memory(project: Project, layers: tuple[str, ...], children: int) -> None:
    program = f"""
        import os, time
        for _ in range({children}):
            if os.fork() == 0:
                break
        held = []
        for _ in range({40 if children == 0 else 10}):
            held.append(b'm' * (16 << 20))
            time.sleep(0.01)
        time.sleep(20)
    """
    limits = dataclasses.replace(QUICK, memory=300 << 20)
    outcome = project.run(program, limits=limits, without=layers)
    assert outcome.kind == "memory"
    assert outcome.seconds < 10
    assert blocked_reason(outcome) == "used more than 300 MiB of memory"


@linux
def test_memory_shared_by_forks_counts_once(project: Project) -> None:
    program = """
        import os, time
        held = b'm' * (160 << 20)
        for _ in range(6):
            if os.fork() == 0:
                time.sleep(60)
        time.sleep(0.5)
    """
    outcome = project.run(program, limits=dataclasses.replace(QUICK, memory=400 << 20))
    assert outcome.kind == "finished"


def test_file_size(project: Project) -> None:
    program = """
        with open('big', 'wb') as stream:
            for _ in range(100):
                stream.write(bytes(1 << 20))
    """
    outcome = project.run(program, limits=dataclasses.replace(QUICK, file_size=4 << 20))
    assert outcome.kind in ("exit", "signal")
    assert "File too large" in outcome.tail or outcome.signal == "SIGXFSZ"


def test_many_files_fill_no_disk(project: Project) -> None:
    program = """
        import os, time
        for i in range(60):
            with open(f'big{i}', 'wb') as stream:
                stream.write(os.urandom(1 << 20))
                stream.flush()
                os.fsync(stream.fileno())
            time.sleep(0.02)
        time.sleep(20)
    """
    outcome = project.run(program, limits=dataclasses.replace(QUICK, file_size=2 << 20))
    assert outcome.kind == "disk"
    assert blocked_reason(outcome) == "filled the disk"


def test_command_that_cannot_be_started(project: Project) -> None:
    from warplint.probe import sandbox
    from warplint.probe.scratch import Scratch

    with Scratch(project.root, project.root) as scratch:
        outcome = sandbox.run(["/no/such/python"], scratch=scratch, environment={}, limits=QUICK)
    assert outcome.kind == "failed"
    assert blocked_reason(outcome).startswith("could not be started: [Errno 2]")
