"""Take rights away from the current process before it becomes the user's program.

Everything here acts on the process that calls it, between fork and exec, and is inherited by
whatever that process starts. Each layer is independent and optional: an old kernel, macOS, a
container or an unprivileged user has fewer of them, and every function says what it achieved,
so that the record of a run can name what was confined.

- *Landlock* (Linux 5.13+, no privilege needed): writing only below given directories, no TCP,
  no signals to processes outside.
- *Namespaces* (root, or user namespaces allowed): no network, own process numbers (the end of
  the first process ends all), the whole file system mounted read-only but for the given
  directories. Unlike Landlock this also stops chmod and utime.
- *seccomp* (Linux, no privilege needed): no sockets at all (a session bus or a container
  daemon listening on a path would start processes outside every other layer), no debugging
  of other processes.
- resource limits (everywhere POSIX).

Standard library only, Python 3.9+; imports nothing of warplint.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import os
import signal
import stat
import struct
import sys
from collections.abc import Sequence

LINUX = sys.platform.startswith("linux")
_libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None


def _call(name: str, *arguments: object) -> int:
    """Call a function of the C library; a negative answer becomes an ``OSError``."""
    function = getattr(_libc, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, f"{name} is not in the C library")
    answer = function(*arguments)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return int(answer)


def _syscall(number: int, *arguments: object) -> int:
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _call("syscall", ctypes.c_long(number), *wide)


# --- prctl ---------------------------------------------------------------------------------

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4


def _prctl(option: int, *arguments: int) -> bool:
    if not LINUX:
        return False
    padded = list(arguments) + [0] * (4 - len(arguments))
    try:
        _call("prctl", ctypes.c_int(option), *[ctypes.c_ulong(a) for a in padded])
    except OSError:
        return False
    return True


def no_new_privileges() -> bool:
    """Make set-user-id programs powerless; Landlock and seccomp require it of ordinary users."""
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become_subreaper() -> bool:
    """Adopt every orphaned descendant, so that a daemon cannot leave the process tree."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: int = signal.SIGKILL) -> bool:
    """Receive signal ``number`` when the parent ends, however it ends."""
    return _prctl(_PR_SET_PDEATHSIG, int(number))


def set_dumpable(on: bool) -> bool:
    """When off, processes of the same user cannot look into this one (memory, descriptors)."""
    return _prctl(_PR_SET_DUMPABLE, int(on))


# --- Landlock ------------------------------------------------------------------------------

_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION_FLAG = 1
_LANDLOCK_RULE_PATH_BENEATH = 1

_FS_WRITE_FILE = 1 << 1
_FS_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_FS_REFER = 1 << 13  # ABI 2
_FS_TRUNCATE = 1 << 14  # ABI 3
_FS_IOCTL_DEV = 1 << 15  # ABI 5
_NET_TCP = 0b11  # ABI 4: bind, connect
_SCOPE = 0b11  # ABI 6: abstract unix sockets, signals

_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    # A GPU is driven by writing to its devices; without them CUDA programs see no GPU.
    "/dev/nvidia*",
    "/dev/nvidia-caps/*",
    "/dev/dri/renderD*",
    "/dev/dxg",
)


def landlock_abi() -> int:
    """Version of Landlock the kernel offers to this process; 0 where there is none."""
    if not LINUX:
        return 0
    try:
        return _syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION_FLAG)
    except OSError:
        return 0


def _devices() -> list[str]:
    paths = [path for pattern in _DEVICES for path in glob.glob(pattern)]
    return [path for path in paths if stat.S_ISCHR(os.stat(path).st_mode)]


def landlock(writable: Sequence[str]) -> list[str]:
    """Allow writing, creating and removing only below ``writable``; reading stays free.

    Returns what was achieved. Directories of ``writable`` that do not exist are skipped.
    """
    abi = landlock_abi()
    if abi < 1:
        return []
    on_files = _FS_WRITE_FILE
    if abi >= 3:
        on_files |= _FS_TRUNCATE
    if abi >= 5:
        on_files |= _FS_IOCTL_DEV
    on_directories = on_files | _FS_REMOVE_AND_MAKE
    if abi >= 2:
        on_directories |= _FS_REFER
    fields = [on_directories]
    if abi >= 4:
        fields.append(_NET_TCP)
    if abi >= 6:
        fields.append(_SCOPE)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = -1
    try:
        ruleset = _syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
        for path in filter(os.path.isdir, writable):
            _allow(ruleset, path, on_directories)
        for path in _devices():
            _allow(ruleset, path, on_files)
        _syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    except OSError:
        return []
    finally:
        if ruleset >= 0:
            os.close(ruleset)
    achieved = ["writes confined by landlock"]
    if abi >= 6:
        achieved.append("signals confined by landlock")
    return achieved


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Add one rule; a path that is not there (any more) needs none."""
    try:
        handle = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = struct.pack("=Qi", rights, handle)
        _syscall(_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(handle)


# --- namespaces ----------------------------------------------------------------------------

_CLONE = {
    "mount": 0x00020000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
_MS_RDONLY = 0x1
_MS_NOSUID = 0x2
_MS_NODEV = 0x4
_MS_NOEXEC = 0x8
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 0x40000
_MOUNT_SETATTR = 442
_MOUNT_ATTR_RDONLY = 0x1
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_SHARED_MEMORY = "/dev/shm"


def namespace_choices() -> list[tuple[str, ...]]:
    """Sets of namespaces worth trying, the most confining first, none at all last."""
    if not LINUX:
        return [()]
    sets: list[tuple[str, ...]] = [
        ("mount", "net", "ipc", "pid"),
        ("mount", "net", "ipc"),
        ("net", "ipc"),
    ]
    if os.geteuid() != 0:
        # An ordinary user needs a user namespace to be allowed the others.
        sets = [("user", *names) for names in sets]
    return [*sets, ()]


def enter_namespaces(names: Sequence[str]) -> None:
    """Leave the namespaces ``names`` of the parent; all of them or an ``OSError``.

    With ``pid`` the *children* of the caller live in the new namespace, the first as its init.
    """
    if not names:
        return
    user, group = os.geteuid(), os.getegid()
    flags = 0
    for name in names:
        flags |= _CLONE[name]
    _call("unshare", ctypes.c_int(flags))
    if "user" in names:
        # The program keeps its own user and group numbers, and no others.
        for path, text in (
            ("/proc/self/setgroups", "deny"),
            ("/proc/self/uid_map", f"{user} {user} 1"),
            ("/proc/self/gid_map", f"{group} {group} 1"),
        ):
            with open(path, "w", encoding="ascii") as stream:
                stream.write(text)


def seal_mounts(writable: Sequence[str], own_processes: bool, shared_memory: int) -> None:
    """In a new mount namespace, make everything read-only except ``writable``.

    ``/dev/shm`` becomes an empty one of ``shared_memory`` bytes, and with ``own_processes``
    ``/proc`` shows the processes of the new namespace only. Raises ``OSError``.
    """
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE, None)
    _set_read_only("/", True)
    for path in writable:
        _mount(path, path, None, _MS_BIND | _MS_REC, None)
        _set_read_only(path, False)
    if os.path.isdir(_SHARED_MEMORY):
        options = f"size={shared_memory},mode=1777"
        _mount("tmpfs", _SHARED_MEMORY, "tmpfs", _MS_NOSUID | _MS_NODEV, options)
    if own_processes:
        flags = _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
        _mount("proc", "/proc", "proc", flags, None)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None) -> None:
    def encode(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    arguments = (encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(options))
    _call("mount", *arguments)


def _set_read_only(path: str, on: bool) -> None:
    setting, clearing = (_MOUNT_ATTR_RDONLY, 0) if on else (0, _MOUNT_ATTR_RDONLY)
    attributes = struct.pack("=4Q", setting, clearing, 0, 0)
    _syscall(
        _MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), _AT_RECURSIVE if on else 0, attributes, len(attributes)
    )


# --- capabilities --------------------------------------------------------------------------

# What root keeps is root's reach over files: without it a program could not read a checkout
# that belongs to another user. Landlock and the read-only mounts bound where it may write.
_KEPT_CAPABILITIES = (0, 1, 2, 3, 4)  # CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID
_CAPABILITY_VERSION_3 = 0x20080522


def drop_capabilities() -> bool:
    """Give up every privilege of root other than its access to files."""
    if not LINUX or os.geteuid() != 0:
        return False
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        if capability not in _KEPT_CAPABILITIES:
            _prctl(_PR_CAPBSET_DROP, capability)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    held = bytearray(24)
    buffer = (ctypes.c_char * len(held)).from_buffer(held)
    try:
        _call("capget", header, buffer)
        mask = sum(1 << capability for capability in _KEPT_CAPABILITIES)
        low = [word & mask for word in struct.unpack_from("=3I", held, 0)]
        _call("capset", header, struct.pack("=6I", *low, 0, 0, 0))
    except OSError:
        return False
    return True


# --- seccomp -------------------------------------------------------------------------------

_DENIED = {
    # name: (x86_64, aarch64). io_uring would open sockets behind the filter's back; the
    # others reach into processes or key rings of the user that are none of the program's.
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EACCES


def forbid_system_calls() -> bool:
    """Refuse sockets and calls that reach into other processes (needs no_new_privileges).

    ``socketpair`` and pipes stay: they only connect the program with itself.
    """
    if not LINUX or sys.maxsize < 2**32:
        return False
    column, architecture = _MACHINES.get(os.uname().machine, (-1, 0))
    if column < 0:
        return False
    numbers = sorted({pair[column] for pair in _DENIED.values()})
    refuse = len(numbers) + 5  # index of the last instruction; jumps count from the next one

    lines = [
        (_LOAD, 0, 0, 4),  # the architecture the call was made for
        (_JUMP_EQUAL, 0, refuse - 2, architecture),
        (_LOAD, 0, 0, 0),  # the number of the call
        (_JUMP_GREATER_EQUAL, refuse - 4, 0, _X32),
    ]
    for number in numbers:
        lines.append((_JUMP_EQUAL, refuse - len(lines) - 1, 0, number))
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = struct.pack("@HP", len(lines), ctypes.addressof(code))
    holder = ctypes.create_string_buffer(program)
    return _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(holder))


# --- resource limits -----------------------------------------------------------------------

_ADDRESS_SPACE_SLACK = 16 << 30
_THREADS_A_PROCESS = 8


def limit_resources(seconds: float, memory: int, file_size: int, tasks: int = 0) -> bool:
    """Bound what one process may take; the supervisor bounds what they take together.

    ``tasks`` bounds processes and threads; it is counted per user, so it may only be set where
    the program is alone in a user namespace.
    """
    try:
        import resource
    except ImportError:
        return False
    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": file_size,
        "RLIMIT_NOFILE": 4096,
        "RLIMIT_CPU": int(seconds * (os.cpu_count() or 1)) + 10,
    }
    if tasks:
        wanted["RLIMIT_NPROC"] = tasks
    # Compilers and CUDA reserve far more addresses than they use memory: CUDA hundreds of
    # gigabytes, so the limit is only set where there is no GPU. macOS does not honour it.
    if LINUX and not glob.glob("/dev/nvidia*") and not os.path.exists("/dev/dxg"):
        wanted["RLIMIT_AS"] = memory + _ADDRESS_SPACE_SLACK
    taken = True
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            taken = False
    return taken


def offer_to_oom_killer() -> bool:
    """When the machine runs out of memory, let this process be ended before any other."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as stream:
        stream.write("1000")
        return True
    return False


# --- all together --------------------------------------------------------------------------


def restrict(
    writable: Sequence[str],
    *,
    seconds: float,
    memory: int,
    file_size: int,
    processes: int,
    namespaces: Sequence[str] = (),
    without: Sequence[str] = (),
) -> list[str]:
    """Apply every layer that needs no retry to this process; return what was achieved.

    ``namespaces`` are those already entered (they count in the answer); ``without`` names
    layers to leave out (``landlock``, ``seccomp``), which the tests use to play an old kernel.
    """
    achieved: list[str] = []
    if "mount" in namespaces:
        achieved.append("writes confined by read-only mounts")
    if "pid" in namespaces:
        achieved.append("own process namespace")
    tasks = _THREADS_A_PROCESS * processes if "user" in namespaces else 0
    if limit_resources(seconds, memory, file_size, tasks):
        achieved.append("resource limits")
    if drop_capabilities():
        achieved.append("privileges dropped")
    no_new_privileges()
    tcp = False
    if "landlock" not in without:
        # The shared memory of a mount namespace is its own; the machine's is other people's.
        own = [_SHARED_MEMORY] if "mount" in namespaces else []
        landlocked = landlock([*writable, *own])
        achieved += landlocked
        tcp = bool(landlocked) and landlock_abi() >= 4
    sockets = "seccomp" not in without and forbid_system_calls()
    if "net" in namespaces or sockets:
        achieved.append("network off")
    elif tcp:
        achieved.append("tcp off")
    return achieved
