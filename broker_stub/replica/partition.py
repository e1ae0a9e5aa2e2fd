"""The local replica of a partition: its leader, epoch, in-sync replicas and high watermark.

The log knows what is written (the log end offset), the partition what readers may see (the high
watermark). Serving thread only.
"""

from typing import Final

from broker_stub.log.index.transaction_index import AbortedTransaction
from broker_stub.log.partition_log import AppendInfo, AppendOrigin, LogRead, PartitionLog
from broker_stub.metadata.image import PartitionImage
from broker_stub.replica.in_sync_replicas import check_min_insync_replicas
from broker_stub.replica.leader_epoch_check import NO_EPOCH, check_leader_epoch
from pyclient.error_codes import NotLeaderOrFollowerError
from pyclient.protocol.primitives import Uuid

ALL_REPLICAS: Final = -1  # acks


class Partition:
    """The local replica of a partition."""

    __slots__ = (
        "_node_id",
        "_unsynced_to",
        "index",
        "isr",
        "key",
        "leader",
        "leader_epoch",
        "log",
        "min_insync_replicas",
        "replicas",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        *,
        node_id: int,
        topic: str,
        topic_id: Uuid,
        image: PartitionImage,
        log: PartitionLog,
        min_insync_replicas: int,
    ) -> None:
        self._node_id = node_id
        self._unsynced_to = 0  # the high watermark waits until this is flushed
        self.topic = topic
        self.topic_id = topic_id
        self.index = image.partition_id
        self.key = (topic_id, image.partition_id)
        """What delayed operations watch in the purgatory."""
        self.log = log
        self.min_insync_replicas = min_insync_replicas
        self.update(image)

    def update(self, image: PartitionImage) -> None:
        """Apply what the controller decided."""
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.replicas = image.replicas
        self.isr = image.isr
        if self.leader == self._node_id:
            self.log.assign_leader_epoch(self.leader_epoch)
        self._advance_high_watermark()

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Where readers stop: all before it is on every in-sync replica."""
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Where `read_committed` consumers stop."""
        return self.log.last_stable_offset

    def follow_flushes(self) -> None:
        """Let readers see what the background has flushed. Call before asking where they stop."""
        if self._unsynced_to:
            self._advance_high_watermark()

    def check_leader_epoch(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Check that this broker leads the partition, in the epoch that the client knows.

        Raises:
            NotLeaderOrFollowerError: another broker leads the partition.
            FencedLeaderEpochError: the client knows an older epoch.
            UnknownLeaderEpochError: the client knows a newer epoch than this broker.
        """
        if self.leader != self._node_id:
            raise NotLeaderOrFollowerError(f"broker {self.leader} leads {self}")
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            check_leader_epoch(self, self.leader_epoch, current_leader_epoch)

    def append(
        self,
        batches: memoryview | bytearray,
        *,
        acks: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        is_verified: bool = False,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Append as the leader, and let readers see what every in-sync replica has.

        If the result says that a flush is due, the caller flushes; until then nobody reads the
        records.

        Raises:
            NotLeaderOrFollowerError: another broker leads the partition.
            NotEnoughReplicasError: acks=all, and fewer replicas are in sync than
                `min.insync.replicas` (at most all of them) asks for.
            BrokerResponseError: the log refused the batches; nothing was written.
        """
        self.check_leader_epoch()
        if acks == ALL_REPLICAS and len(self.isr) < self.min_insync_replicas:
            check_min_insync_replicas(
                self,
                self.min_insync_replicas,
                in_sync=len(self.isr),
                replicas=len(self.replicas),
            )
        info = self.log.append(
            batches,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            is_verified=is_verified,
            transaction_version=transaction_version,
        )
        if info.flush_due:
            self._unsynced_to = max(self._unsynced_to, info.last_offset + 1)
        self._advance_high_watermark()
        return info

    def readable_end(self, *, committed_only: bool) -> int:
        """Where a consumer of this isolation level stops."""
        return self.last_stable_offset if committed_only else self.high_watermark

    def read(
        self, offset: int, max_bytes: int, *, limit_offset: int, min_one_batch: bool
    ) -> LogRead:
        """Whole batches from the one that holds `offset` on.

        Raises:
            OffsetOutOfRangeError: the log has no such offset.
        """
        return self.log.read(
            offset, max_bytes, limit_offset=limit_offset, min_one_batch=min_one_batch
        )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that a `read_committed` consumer skips in a range of offsets."""
        return self.log.aborted_transactions(from_offset, to_offset)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def _advance_high_watermark(self) -> None:
        # This is the only in-sync replica: what it has, all have.
        if self.isr == (self._node_id,):
            log = self.log
            if self._unsynced_to and log.recovery_point >= self._unsynced_to:
                self._unsynced_to = 0
            log.advance_high_watermark(
                log.recovery_point if self._unsynced_to else log.log_end_offset
            )
