"""`warplint server`: speak the language server protocol on standard input and output."""

from __future__ import annotations

import importlib.util
import logging
import sys


class MissingError(Exception):
    """What the server needs is not installed."""


def serve() -> int:
    """Serve one editor until it goes away."""
    missing = [name for name in ("pygls", "lsprotocol") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingError(
            f"the language server needs {' and '.join(missing)}; install warplint with its lsp extra:"
            " pip install 'warplint[lsp]'"
        )
    from warplint.server.handlers import make_server

    # The log of the protocol would be the noise of every editor's log file.
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="warplint: %(message)s")
    make_server().start_io()
    return 0
