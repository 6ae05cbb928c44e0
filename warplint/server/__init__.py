"""The language server: what `warplint check` says, in an editor, while the text is being written.

It reads code with the very stages of the command line, in a process of its own (`worker.py`), so
that the two never disagree and nothing here has to wait. Nothing of the workspace is executed
before the user has allowed it.
"""
