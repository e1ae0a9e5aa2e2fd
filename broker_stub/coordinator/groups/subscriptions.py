"""Which topics the members of a generation subscribe to, read from their JoinGroup metadata.

Only groups of the type `consumer` have metadata that a broker can read, and even theirs may be
anything. All versions of it begin with the fields of version 0, so only those are read.
"""

import struct
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from pyclient.errors import ProtocolError
from pyclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER: Final = "consumer"
_VERSION: Final = struct.Struct(">h")


class Subscriptions:
    """The metadata of one generation's members; parsed when somebody asks."""

    def __init__(self, protocol_type: str | None, metadata: Iterable[bytes] | None) -> None:
        """`metadata` is None before the first generation."""
        self._protocol_type = protocol_type
        self._metadata = None if metadata is None else tuple(metadata)

    @cached_property
    def topics(self) -> frozenset[str] | None:
        """The topics; None if they are not known."""
        if self._protocol_type != CONSUMER or self._metadata is None:
            return None
        try:
            return frozenset(topic for one in self._metadata for topic in _topics(one))
        except (ProtocolError, struct.error):
            return None


def _topics(metadata: bytes) -> list[str]:
    _VERSION.unpack_from(metadata)
    message, _ = ConsumerProtocolSubscription.decode_from(memoryview(metadata), _VERSION.size, 0)
    return message.topics
