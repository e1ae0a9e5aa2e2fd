"""The message beside an error code in a response. A pure function."""

from pyclient.error_codes import BrokerResponseError


def message_of(error: BrokerResponseError) -> str | None:
    """The error's own text; None if it has none beyond its code."""
    return str(error.args[0]) if error.args else None
