"""The broker's log lines, under the logger `broker_stub`.

`logging` is imported with the first line: a broker that has nothing to report starts without it.
Any thread may call.
"""

from __future__ import annotations


def warn(message: str, *values: object) -> None:
    """Something went wrong for one client, or was repaired."""
    import logging

    logging.getLogger("broker_stub").warning(message, *values)


def exception(message: str, *values: object) -> None:
    """A mistake of ours: the traceback of the exception being handled goes with it."""
    import logging

    logging.getLogger("broker_stub").exception(message, *values)
