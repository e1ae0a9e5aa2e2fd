"""kafka-python's module of the assignors' interface."""

from pyclient.compat.assignors import (
    AbstractPartitionAssignor,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyclient.consumer.group.assignors import RebalanceProtocol

__all__ = [
    "AbstractPartitionAssignor",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "RebalanceProtocol",
]
