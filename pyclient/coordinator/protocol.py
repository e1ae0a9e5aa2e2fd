"""kafka-python 2's module of the messages between members."""

from pyclient.compat.assignors import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

__all__ = [
    "ConsumerProtocolMemberAssignment",
    "ConsumerProtocolMemberMetadata",
]
