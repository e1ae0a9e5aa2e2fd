"""The broker's log lines, by the logger `broker_stub`. Any thread.

`logging` is imported with the first line: a broker without one starts faster.
"""

import sys


def is_tracing() -> bool:
    """Whether requests are to be logged; not if nothing has configured logging so far."""
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger("broker_stub").isEnabledFor(logging.DEBUG)


def warn(message: str, *values: object) -> None:
    """Log a warning: something went wrong for one client, or was repaired."""
    import logging

    logging.getLogger("broker_stub").warning(message, *values)


def exception(message: str, *values: object) -> None:
    """Log an internal error, with the traceback of the exception being handled."""
    import logging

    logging.getLogger("broker_stub").exception(message, *values)
