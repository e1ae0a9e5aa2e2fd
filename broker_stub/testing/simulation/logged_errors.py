"""Exceptions that client or broker log and survive: they are bugs, and fail a history.

Handlers, callbacks and commands that raise are logged and answered, so that one of them can't
end a broker or a client. In a simulation nobody reads the log.
"""

import logging
from typing import Final

_LOGGERS: Final = ("broker_stub", "pyclient")


class LoggedErrors(logging.Handler):
    """Listens to the loggers of client and broker, from its making until `detach`."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._first: tuple[str, BaseException] | None = None
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first one."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and self._first is None:
            self._first = (f"{record.name}: {record.getMessage()}", error)

    def check(self) -> None:
        """Raise if there was one.

        Raises:
            AssertionError: an exception was logged, which is its cause.
        """
        if self._first is not None:
            message, error = self._first
            raise AssertionError(f"an exception was logged: {message}") from error

    def detach(self) -> None:
        """Remove the handler from the loggers."""
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self)
