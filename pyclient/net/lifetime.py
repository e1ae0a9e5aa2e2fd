"""What happens to open clients when the process forks or ends.

Clients are held weakly: this keeps none alive.
"""

import atexit
import os
import weakref
from typing import Protocol


class Mortal(Protocol):
    """A client that a fork breaks, and that ends before the process does."""

    def after_fork_in_child(self) -> None:
        """Mark the client as unusable: a child has no threads, and its sockets are the parent's."""

    def close_at_exit(self) -> None:
        """The interpreter is about to end: close, within a bound."""


_open: weakref.WeakSet[Mortal] = weakref.WeakSet()


def watch(client: Mortal) -> None:
    """Tell `client` of forks and of the end."""
    _open.add(client)


def unwatch(client: Mortal) -> None:
    """Stop telling a closed client."""
    _open.discard(client)


def _after_fork_in_child() -> None:
    inherited = list(_open)
    _open.clear()
    for client in inherited:
        client.after_fork_in_child()


def _close_all_at_exit() -> None:
    for client in list(_open):
        client.close_at_exit()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_close_all_at_exit)
