"""The one kind of error a user sees: a line about the call, and exit status 2."""

from __future__ import annotations


def error_text(error: BaseException) -> str:
    """What the system said, in lower case, without number and file name."""
    return (getattr(error, "strerror", None) or str(error)).lower()


class CallError(Exception):
    """The call, the configuration or warplint itself failed; the message is the whole story."""


class Terminated(BaseException):
    """SIGTERM or SIGHUP: unwinds as Ctrl-C does, so that everything is cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
