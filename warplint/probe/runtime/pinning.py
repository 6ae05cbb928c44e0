"""Forks that repeat each other: randomness, OS entropy and shared file offsets.

CPython reseeds ``random`` in every forked child, ``default_rng()`` draws from the OS, and
children share the parent's file offsets. Each was measured to change what a child computes.
"""

from __future__ import annotations

import hashlib
import os
import random
import stat


class Entropy:
    """A deterministic stand-in for ``os.urandom``; its counter is copied by a fork."""

    def __init__(self) -> None:
        self.counter = 0

    def __call__(self, size: int) -> bytes:
        blocks = []
        produced = 0
        while produced < size:
            block = hashlib.sha256(b"warplint %d" % self.counter).digest()
            self.counter += 1
            blocks.append(block)
            produced += len(block)
        return b"".join(blocks)[:size]


def pin_entropy() -> Entropy:
    """Replaces the OS entropy source before numpy.random is imported, and seeds ``random``.

    ``random.SystemRandom`` (and through it ``secrets`` and numpy's SeedSequence) looks its
    source up in the ``random`` module at every call.
    """
    entropy = Entropy()
    os.urandom = entropy
    random._urandom = entropy  # type: ignore[attr-defined]
    random.seed(0)
    import numpy.random  # noqa: F401  (lazily imported by numpy: its first use must not come after a fork)

    return entropy


def snapshot() -> object:
    """State to hand to :func:`restore` in the child; taken before the fork."""
    return random.getstate()


def restore(state: object) -> None:
    random.setstate(state)  # type: ignore[arg-type]


def separate_files() -> list[str]:
    """Gives a forked child its own offsets; returns what could not be separated.

    Regular files opened for reading are reopened where they stand; files opened for writing
    only are replaced by the null device, so that a child leaves nothing behind. Pipes and
    sockets the program opened cannot be shared and are named.
    """
    shared: list[str] = []
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return shared
    import fcntl

    for fd in descriptors:
        if fd <= 2:
            continue
        try:
            mode = os.fstat(fd).st_mode
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            continue
        try:
            offset = os.lseek(fd, 0, os.SEEK_CUR)
            if flags & os.O_ACCMODE == os.O_WRONLY:
                fresh = os.open(os.devnull, os.O_WRONLY)
            else:
                fresh = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
                os.lseek(fresh, offset, os.SEEK_SET)
            inheritable = os.get_inheritable(fd)
            os.dup2(fresh, fd, inheritable)
            os.close(fresh)
        except OSError:
            shared.append(str(fd))
    return shared
