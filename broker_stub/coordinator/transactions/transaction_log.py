"""Transactions as records of `__transaction_state`, in Kafka's schemas.

A key starts with the number of its record type, a value with its version. A null value deletes.
"""

import struct
from collections.abc import ItemsView
from functools import lru_cache
from typing import Final, TypeAlias

from broker_stub.coordinator.transactions.transaction_state import (
    NO_PRODUCER_ID,
    STATES_BY_NUMBER,
    TransactionImage,
    TransactionState,
)
from pyclient.errors import CorruptRecordError
from pyclient.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from pyclient.types import TopicPartition
from pyclient.varint import encode_uvarint

STATE_TOPIC: Final = "__transaction_state"
_KEY_VERSION: Final = 0
_FLEXIBLE_FROM: Final = 1  # of the feature transaction.version, and of the value
_PREFIX: Final = struct.Struct(">h")
_HEAD: Final = struct.Struct(">hqhib")  # version, producer id and epoch, timeout, state
_TIMES: Final = struct.Struct(">qq")  # last update, start
_ID_TAG: Final = struct.Struct(">bbq")  # tag, size, producer id
_VERSION_TAG: Final = struct.Struct(">bbh")

KeyValue: TypeAlias = tuple[bytes, bytes | None]


def transaction_record(image: TransactionImage, transaction_version: int) -> KeyValue:
    """A transaction, in the version that brokers of the cluster's `transaction.version` read."""
    key = _key(image.transactional_id)
    if transaction_version >= _FLEXIBLE_FROM:
        return key, _flexible_value(image)
    value = TransactionLogValue(
        producer_id=image.producer_id,
        producer_epoch=image.producer_epoch,
        transaction_timeout_ms=image.timeout_ms,
        transaction_status=image.state.number,
        transaction_partitions=_partitions(image),
        transaction_last_update_timestamp_ms=image.last_update_ms,
        transaction_start_timestamp_ms=image.start_ms,
    )
    return key, _PREFIX.pack(0) + value.encode_bytes(0)


def _partitions(image: TransactionImage) -> list[PartitionsSchema] | None:
    if image.state is TransactionState.EMPTY:
        return None
    return [PartitionsSchema(topic=name, partition_ids=ids) for name, ids in _by_topic(image)]


def _by_topic(image: TransactionImage) -> ItemsView[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(image.partitions):
        topics.setdefault(topic, []).append(partition)
    return topics.items()


def _flexible_value(image: TransactionImage) -> bytes:
    """By hand what the codec would write: every transaction writes three of these."""
    head = _HEAD.pack(
        1, image.producer_id, image.producer_epoch, image.timeout_ms, image.state.number
    )
    pieces = [head]
    if image.state is TransactionState.EMPTY:
        pieces.append(b"\0")  # null
    else:
        topics = _by_topic(image)
        pieces.append(encode_uvarint(len(topics) + 1))
        for topic, partitions in topics:
            name = topic.encode()
            pieces += [encode_uvarint(len(name) + 1), name, encode_uvarint(len(partitions) + 1)]
            pieces.append(struct.pack(f">{len(partitions)}ib", *partitions, 0))
    pieces.append(_TIMES.pack(image.last_update_ms, image.start_ms))
    tags = []
    if image.previous_producer_id != NO_PRODUCER_ID:
        tags.append(_ID_TAG.pack(0, 8, image.previous_producer_id))
    if image.next_producer_id != NO_PRODUCER_ID:
        tags.append(_ID_TAG.pack(1, 8, image.next_producer_id))
    if image.client_version:
        tags.append(_VERSION_TAG.pack(2, 2, image.client_version))
    return b"".join([*pieces, bytes([len(tags)]), *tags])


def transaction_tombstone(transactional_id: str) -> KeyValue:
    """The end of a transactional id."""
    return _key(transactional_id), None


def read_transaction(key: bytes | None, value: bytes | None) -> tuple[str, TransactionImage | None]:
    """One record of the topic: a transactional id, and its transaction unless it was deleted.

    Raises:
        CorruptRecordError: the record is too short, or names a type or state not known here.
        ProtocolError: the key or the value cannot be decoded.
    """
    if key is None or len(key) < _PREFIX.size:
        raise CorruptRecordError("the key is too short for a record type")
    (record_type,) = _PREFIX.unpack_from(key)
    if record_type != TransactionLogKey.record_type:
        raise CorruptRecordError(f"record type {record_type} is not known: a newer Kafka wrote it")
    decoded = TransactionLogKey.decode(memoryview(key)[_PREFIX.size :], _KEY_VERSION)
    transactional_id = decoded.transactional_id
    if value is None:
        return transactional_id, None
    if len(value) < _PREFIX.size:
        raise CorruptRecordError("the value is too short for a version")
    (version,) = _PREFIX.unpack_from(value)
    logged = TransactionLogValue.decode(memoryview(value)[_PREFIX.size :], version)
    return transactional_id, _image(transactional_id, logged)


def _image(transactional_id: str, value: TransactionLogValue) -> TransactionImage:
    state = STATES_BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise CorruptRecordError(f"transaction state {value.transaction_status} is not known")
    return TransactionImage(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(
            TopicPartition(one.topic, partition)
            for one in value.transaction_partitions or ()
            for partition in one.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


@lru_cache(maxsize=4096)
def _key(transactional_id: str) -> bytes:
    """Encoded once: a transactional id is written again and again."""
    key = TransactionLogKey(transactional_id=transactional_id)
    return _PREFIX.pack(TransactionLogKey.record_type) + key.encode_bytes(_KEY_VERSION)
