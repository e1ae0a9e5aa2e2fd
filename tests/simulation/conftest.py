"""Fixtures for simulations."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet_logs() -> Iterator[None]:
    """Thousands of expected warnings would bury the trace; exceptions still fail a history."""
    loggers = [logging.getLogger(name) for name in ("pyclient", "broker_stub")]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    yield
    for logger in loggers:
        logger.setLevel(logging.NOTSET)
