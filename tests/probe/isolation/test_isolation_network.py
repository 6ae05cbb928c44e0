"""The network is off, and so are sockets that lie in the file system."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from isolation_support import ALL, BARE, NO_NAMESPACES, Project, linux

pytestmark = linux

CONNECT = """
import os, socket
def attempt(name, family, kind, address):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(2)
            s.connect(address)
            if kind == socket.SOCK_DGRAM:
                s.send(b'x')
        print(name, 'connected')
    except OSError:
        print(name, 'refused')
port = int(os.environ['PORT'])
attempt('tcp', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', port))
attempt('udp', socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', port))
attempt('unix', socket.AF_UNIX, socket.SOCK_STREAM, os.environ['SOCKET'])
a, b = socket.socketpair()
a.send(b'x')
assert b.recv(1) == b'x'
"""


@pytest.mark.parametrize(
    "layers",
    [ALL, NO_NAMESPACES, ("seccomp",), BARE],
    ids=["all", "no-namespaces", "no-seccomp", "bare"],
)
def test_no_connection_or_it_is_said(project: Project, tmp_path: Path, layers: tuple[str, ...]) -> None:
    path = tmp_path / "s"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(path))
        local.listen()
        project.extra.update(PORT=str(listener.getsockname()[1]), SOCKET=str(path))
        outcome = project.run(CONNECT, without=layers)
    assert outcome.kind == "finished", outcome.tail
    lines = outcome.tail.splitlines()
    if "network off" in outcome.confined:
        assert lines[:2] == ["tcp refused", "udp refused"]
    if "seccomp" not in layers and "network off" in outcome.confined:
        assert lines[2] == "unix refused"
    if layers == BARE:
        assert "network off" not in outcome.confined
