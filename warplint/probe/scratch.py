"""A copy of the project in which a program may do what it likes.

A program reads and writes by relative paths, and often next to ``__file__``. It is therefore
run in a copy of its project: its reads find the files, its writes land in the copy. Where the
kernel can confine writes (see ``runtime/confine.py``) the copy is convenience; where it cannot,
the copy is what protects the user's files from everything but an absolute path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from warplint import buffers
from warplint.probe.runtime import confine

MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
SKIPPED = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        ".eggs",
        ".cache",
        ".warplint",
    }
)
MOST_BYTES_A_FILE = 8 << 20
MOST_BYTES = 256 << 20
MOST_FILES = 20_000
MOST_LINKS = 20_000
_SYSTEM = (
    *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/proc"),
    *("/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/local", "/var", "/var/tmp"),
    *("/Applications", "/Library", "/System", "/Users", "/Volumes", "/private", "/private/tmp"),
)
_PREFIX = "warplint-"
_STALE_SECONDS = 60


def is_broad(directory: Path) -> bool:
    """Whether a directory holds far more than a project: home, ``/``, the temp directory …"""
    directory = directory.resolve()
    home = Path(os.path.expanduser("~")).resolve()
    broad = {home, *home.parents, Path(tempfile.gettempdir()).resolve(), *map(Path, _SYSTEM)}
    return directory in broad


def project_root(program: Path, checked_root: Path) -> Path:
    """The directory a program belongs to: what it may expect to find files in.

    The nearest ancestor with a project marker, but not above ``checked_root`` when the program
    lies below that; else ``checked_root`` if it contains the program; else the program's
    directory, which also stands in for anything too broad to be a project.
    """
    directory = program.resolve().parent
    checked_root = checked_root.resolve()
    inside = directory.is_relative_to(checked_root)
    for ancestor in (directory, *directory.parents):
        if is_broad(ancestor):
            break
        if any((ancestor / marker).exists() for marker in MARKERS):
            return ancestor
        if inside and ancestor == checked_root:
            break
    if inside and not is_broad(checked_root):
        return checked_root
    return directory


class Scratch:
    """A temporary copy of ``root``; a context manager that removes it in the end.

    ``tree`` is the copy of ``root``, ``working_directory`` the copy of the directory the program
    is to run in (of ``root`` when that lies elsewhere), ``directory`` an empty directory for
    temporary files and ``pycache`` one for bytecode.
    """

    def __init__(self, root: Path, working_directory: Path) -> None:
        self.root = root.resolve()
        self._wanted_directory = working_directory.resolve()
        self._lock = -1
        self.base = Path()
        self.tree = Path()
        self.directory = Path()
        self.pycache = Path()
        self.working_directory = Path()

    def __enter__(self) -> Scratch:
        _remove_stale()
        self.base = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        try:
            self._lock = _lock(self.base)
            self.directory = self.base / "tmp"
            self.pycache = self.base / "pycache"
            self.tree = self.base / "tree" / (self.root.name or "root")
            for directory in (self.directory, self.pycache, self.tree):
                directory.mkdir(parents=True)
            _Copy(self.root, self.tree, self._wanted_directory).run()
            self._write_unsaved()
            self.working_directory = self.tree
            if self._wanted_directory.is_relative_to(self.root):
                self.working_directory = self.to_scratch(self._wanted_directory)
                self.working_directory.mkdir(parents=True, exist_ok=True)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def _write_unsaved(self) -> None:
        """What an editor holds of the project is run as it stands there."""
        self.lay_over(buffers.below(self.root))

    def lay_over(self, contents: Mapping[Path, bytes]) -> None:
        """Give files of the copy other contents; one that has no copy here is left alone."""
        for path, data in contents.items():
            copy = self.to_scratch(path)
            if copy != path and copy.parent.resolve().is_relative_to(self.tree):
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.unlink(missing_ok=True)  # it may be a link to the original
                copy.write_bytes(data)

    def to_scratch(self, path: Path) -> Path:
        """Where ``path`` lies in the copy; a path outside the project stays what it is."""
        path = Path(os.path.abspath(path))
        for spelling in (path, path.resolve()):
            if spelling.is_relative_to(self.root):
                return self.tree / spelling.relative_to(self.root)
        return path

    def to_original(self, path: str) -> str:
        """The user's own path for one a program reported; other paths stay what they are."""
        tree = str(self.tree)
        if path == tree or path.startswith(tree + os.sep):
            return str(self.root) + path[len(tree) :]
        return path

    def original_text(self, text: str) -> str:
        """A text (a traceback, output) with every path of the copy turned into the user's own."""
        return text.replace(str(self.tree), str(self.root))

    def remove(self) -> None:
        """Remove everything; what cannot be removed now is removed by a later run."""
        if self.base != Path():
            remove_tree(self.base)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class _Copy:
    """Copies a tree within bounds, breadth first: what lies deep is what is linked instead."""

    def __init__(self, root: Path, tree: Path, needed: Path) -> None:
        self.root, self.tree, self.needed = root, tree, needed
        self.files_left, self.bytes_left, self.links_left = MOST_FILES, MOST_BYTES, MOST_LINKS
        # Of a home directory only the files that lie in it are copied.
        self.broad = is_broad(root)
        # A link to a big file lets an unconfined program write through to the original.
        self.most_bytes_a_file = MOST_BYTES_A_FILE if confine.landlock_abi() else MOST_BYTES
        self.seen: set[tuple[int, int]] = set()
        self.own: deque[tuple[str, str]] = deque([(str(root), str(tree))])
        self.foreign: deque[tuple[str, str]] = deque()  # reached by links out of the tree; last

    def run(self) -> None:
        while self.own or self.foreign:
            source, target = (self.own or self.foreign).popleft()
            with contextlib.suppress(OSError):
                self._copy_entries(source, target)

    def _copy_entries(self, source: str, target: str) -> None:
        status = os.stat(source)
        if (status.st_dev, status.st_ino) in self.seen:  # a link back into a copied directory
            return
        self.seen.add((status.st_dev, status.st_ino))
        entries = sorted(os.scandir(source), key=lambda e: (not e.name.endswith(".py"), e.name))
        if len(entries) > self.files_left and not self._is_needed(Path(source)):
            os.rmdir(target)
            self._link(source, target)
            return
        for entry in entries:
            with contextlib.suppress(OSError):
                self._copy_entry(entry, os.path.join(target, entry.name))

    def _copy_entry(self, entry: os.DirEntry[str], target: str) -> None:
        if entry.name in SKIPPED or (self.broad and entry.name.startswith(".")):
            return
        if entry.is_symlink() and self._keep_link(entry.path, target):
            return
        status = os.stat(entry.path)
        if stat.S_ISDIR(status.st_mode):
            self._copy_directory(entry.path, target)
            return
        if not stat.S_ISREG(status.st_mode):
            return
        cost = 0 if entry.name.endswith(".py") else status.st_size  # data must not crowd out code
        if status.st_size <= self.most_bytes_a_file and cost <= self.bytes_left and self.files_left > 0:
            self.files_left -= 1
            self.bytes_left -= cost
            _copy_file(entry.path, target)
        else:
            self._link(entry.path, target)

    def _copy_directory(self, source: str, target: str) -> None:
        """Make a directory whose entries are copied later, or link it."""
        if os.path.exists(os.path.join(source, "pyvenv.cfg")):
            return
        real = Path(os.path.realpath(source))
        own = real.is_relative_to(self.root)
        full = self.broad or self.files_left <= 0
        if (full and not self._is_needed(real)) or (not own and is_broad(real)) or real in self.root.parents:
            self._link(source, target)
            return
        self.files_left -= 1
        os.mkdir(target)
        (self.own if own else self.foreign).append((str(real), target))

    def _is_needed(self, directory: Path) -> bool:
        """Whether the program runs in or below this directory, so that it must be a real one."""
        return self.needed.is_relative_to(directory) or self.root == directory

    def _link(self, source: str, target: str) -> None:
        """Point to the original: still readable, and not counted but as one link."""
        if self.links_left > 0:
            self.links_left -= 1
            os.symlink(os.path.realpath(source), target)

    def _keep_link(self, source: str, target: str) -> bool:
        """Reproduce a link that stays inside the tree; False when its target is to be copied."""
        real = Path(os.path.realpath(source))
        if not real.is_relative_to(self.root):
            return False
        inside = real.relative_to(self.root)
        if SKIPPED.intersection(inside.parts):
            os.symlink(real, target)
        else:
            os.symlink(os.path.relpath(self.tree / inside, os.path.dirname(target)), target)
        return True


def _copy_file(source: str, target: str) -> None:
    """Copy a regular file with its mode and times; never blocks on what is not one."""
    handle = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as reader:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return
        with open(target, "xb") as writer:
            if status.st_size:  # files of /proc claim to be empty and may never end
                shutil.copyfileobj(reader, writer, 1 << 20)
    os.chmod(target, stat.S_IMODE(status.st_mode) & 0o777)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


# --- removal -------------------------------------------------------------------------------


def remove_tree(top: Path) -> None:
    """Remove a directory whatever a program made of it: no rights, links, endless nesting.

    Links are removed, never followed. Instead of descending, which a path of a million levels
    would defeat, each directory's children are moved up to the top until none is left.
    """
    with contextlib.suppress(OSError):
        os.chmod(top, 0o700)
    moved = 0
    pending = [str(top)]
    while pending:
        directory = pending.pop()
        with contextlib.suppress(OSError):
            os.chmod(directory, 0o700)
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                elif directory == str(top):
                    pending.append(entry.path)
                else:
                    os.chmod(entry.path, 0o700)
                    moved += 1
                    up = os.path.join(top, f"{moved}-{uuid.uuid4().hex}")
                    os.rename(entry.path, up)
                    pending.append(up)
        with contextlib.suppress(OSError):
            os.rmdir(directory)
    if os.path.isdir(top):
        with contextlib.suppress(OSError):
            os.rmdir(top)
        shutil.rmtree(top, ignore_errors=True)  # where directories cannot be moved


def _lock(base: Path) -> int:
    """Mark a scratch directory as in use for as long as this process lives."""
    try:
        import fcntl
    except ImportError:
        return -1
    handle = os.open(base / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove_stale() -> None:
    """Remove the scratch directories of runs that were killed before they could."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            status = entry.stat(follow_symlinks=False)
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < _STALE_SECONDS:
                continue  # of another user, or perhaps just being made
            if not os.path.isfile(os.path.join(entry.path, "lock")):
                continue
            try:
                handle = _lock(Path(entry.path))
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    continue
                raise
            remove_tree(Path(entry.path))
            os.close(handle)
