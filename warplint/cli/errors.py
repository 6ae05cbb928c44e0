"""The one kind of error a user sees: a line about the call, and exit status 2."""

from __future__ import annotations


class CallError(Exception):
    """The call, the configuration or warplint itself failed; the message is the whole story."""
