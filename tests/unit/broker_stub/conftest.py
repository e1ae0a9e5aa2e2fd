"""The node under test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.node_harness import NodeHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[NodeHarness]:
    """A node in an empty folder."""
    made = NodeHarness(tmp_path)
    yield made
    made.node.abandon()
