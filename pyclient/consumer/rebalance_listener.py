"""What a program implements to follow its consumer's partitions."""

from abc import ABC, abstractmethod

from pyclient.types import TopicPartition


class ConsumerRebalanceListener(ABC):
    """Told when partitions come and go. Runs on the caller's thread, inside `poll` or `close`.

    Heartbeats go on meanwhile, so a listener may take its time, up to `max.poll.interval.ms`; it
    may call the consumer (`commit`, `seek`, `position`), but for `poll`. An exception that it
    raises comes out of `poll`, after the rebalance step has been finished.
    """

    @abstractmethod
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Partitions are about to go to other members: the last moment to commit their offsets."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Partitions have come; nothing is fetched of them yet, so this may still `seek`."""

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Partitions are gone without a chance to commit: the group has removed this member.

        Others may read them already. Unless overridden, this is a revocation.
        """
        self.on_partitions_revoked(lost)
