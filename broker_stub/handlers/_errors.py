"""How handlers put an error into a response."""

from __future__ import annotations

from pyclient.error_codes import BrokerResponseError


def message_of(error: BrokerResponseError) -> str | None:
    """The text beside an error code: null where it says no more than the code."""
    return str(error.args[0]) if error.args else None
