"""The tuples of the public contract: kafka-python's names, fields and defaults.

A leaf. Tuples and not dataclasses, because programs written for kafka-python unpack and compare
them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class TopicPartitionReplica(NamedTuple):
    """The replica of a partition on one broker."""

    topic: str
    partition: int
    broker_id: int


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next one to read, a note of the program, the leader's epoch."""

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The answer to a search by time: the first offset at or after it, and that record's time."""

    offset: int
    timestamp: int
    leader_epoch: int | None


class ProducerRecord(NamedTuple):
    """A record to send, with the arguments of `KafkaProducer.send`; what interceptors see."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class RecordMetadata(NamedTuple):
    """Where a sent record went.

    `offset` is -1 with acks=0, where no broker tells. `checksum` is None: batches carry one,
    records do not. A size is -1 where the record has no key, value or headers.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    serialized_header_size: int


class BrokerMetadata(NamedTuple):
    """A broker, at the address that it gives to clients."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    """The replicas of a partition; `leader` is -1 while it has none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class MemberState:
    """The states of a group member, as `ConsumerGroupMetadata.state` tells them."""

    UNJOINED = "<unjoined>"
    REBALANCING = "<rebalancing>"
    STABLE = "<stable>"


class ConsumerGroupMetadata(NamedTuple):
    """A snapshot of a consumer's membership in its group."""

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = MemberState.UNJOINED


class PreparedTransaction(NamedTuple):
    """A transaction that is flushed and left open, for `KafkaAdminClient.end_transaction`.

    Attributes:
        transaction_version: the protocol that it was begun in; it is ended in the same.
        is_empty: nothing was sent in it, so that there is nothing to end.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int
    is_empty: bool = False


def format_uuid(uuid: bytes) -> str:
    """Kafka's text form of a topic id: URL-safe base64 of the 16 bytes, without padding."""
    from base64 import urlsafe_b64encode  # seldom needed, and a start should not wait for it

    return urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def parse_uuid(text: str) -> bytes:
    """The 16 bytes of a topic id given in Kafka's text form.

    Raises:
        ValueError: the text is not the form of 16 bytes.
    """
    from base64 import b64decode

    try:
        uuid = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a topic id in URL-safe base64") from error
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is a topic id of {len(uuid)} bytes, not 16")
    return uuid
