"""A scripted network."""

import pytest

from pyclient.net.scripted import ScriptedNetwork


@pytest.fixture
def network() -> ScriptedNetwork:
    return ScriptedNetwork()
