"""confluent-kafka's rebalance callbacks over a `ConsumerRebalanceListener`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from pyclient.compat.confluent.topic_partition import TopicPartition, theirs
from pyclient.consumer.rebalance_listener import ConsumerRebalanceListener
from pyclient.types import TopicPartition as Partition

if TYPE_CHECKING:
    from pyclient.compat.confluent.consumer import Consumer

OnRebalance = Callable[["Consumer", list[TopicPartition]], Any]


class RebalanceCallbacks(ConsumerRebalanceListener):
    """Calls a program's callbacks with its consumer and lists of partitions.

    Attributes:
        is_calling: whether one of them runs. A program may call `assign` there to say where to
            start; what is assigned is the group's decision all the same.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._on_assign: OnRebalance | None = None
        self._on_revoke: OnRebalance | None = None
        self._on_lost: OnRebalance | None = None
        self.is_calling = False

    def call(
        self,
        on_assign: OnRebalance | None,
        on_revoke: OnRebalance | None,
        on_lost: OnRebalance | None,
    ) -> None:
        """Call these from now on."""
        for one in (on_assign, on_revoke, on_lost):
            if one is not None and not callable(one):
                raise TypeError(f"expected a callable, not {type(one).__name__}")
        self._on_assign = on_assign
        self._on_revoke = on_revoke
        self._on_lost = on_lost

    def on_partitions_assigned(self, assigned: set[Partition]) -> None:
        self._call(self._on_assign, assigned)

    def on_partitions_revoked(self, revoked: set[Partition]) -> None:
        try:
            self._call(self._on_revoke, revoked)
        finally:
            self._consumer._give_up(revoked, is_lost=False)

    def on_partitions_lost(self, lost: set[Partition]) -> None:
        try:
            self._call(self._on_lost or self._on_revoke, lost)
        finally:
            self._consumer._give_up(lost, is_lost=True)

    def _call(self, callback: OnRebalance | None, partitions: Collection[Partition]) -> None:
        if callback is None:
            return
        self.is_calling = True
        try:
            callback(self._consumer, [theirs(one) for one in sorted(partitions)])
        finally:
            self.is_calling = False
