"""Partitions grouped by topic, and their bytes: an array of (topic, array of partition numbers).

The subscription, the assignment and the sticky assignor's user data share this layout. The leader
of a large group reads and writes a million of these entries, so they are coded by hand here, not
through message objects.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from pyclient.errors import ProtocolError
from pyclient.types import TopicPartition

PartitionsByTopic: TypeAlias = Mapping[str, Sequence[int]]
"""Partition numbers by topic name."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ONE_PARTITION = struct.Struct(">ii")


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Group partitions by topic, both in order."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


def flat(partitions: PartitionsByTopic) -> list[TopicPartition]:
    """The partitions one by one, in the order of the mapping."""
    return [TopicPartition(topic, number) for topic in partitions for number in partitions[topic]]


def encode_partitions(partitions: PartitionsByTopic) -> bytes:
    """The bytes of the partitions, topics in order."""
    chunks = [_INT32.pack(len(partitions))]
    append = chunks.append
    for topic in sorted(partitions):
        numbers = partitions[topic]
        count = len(numbers)
        append(_encoded_name(topic))
        if count == 1:
            append(_ONE_PARTITION.pack(1, numbers[0]))
        else:
            append(struct.pack(f">{count + 1}i", count, *numbers))
    return b"".join(chunks)


def decode_partitions(data: bytes, position: int) -> tuple[dict[str, Sequence[int]], int]:
    """The partitions at a position, and the position behind them.

    Raises:
        ProtocolError: the bytes end early, or a length is negative.
    """
    try:
        (topics,) = _INT32.unpack_from(data, position)
        if topics < 0:
            raise ProtocolError(f"a list of {topics} topics")
        return _decode_topics(data, position + 4, topics)
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"malformed list of partitions: {error}") from error


def _decode_topics(data: bytes, position: int, topics: int) -> tuple[dict[str, Sequence[int]], int]:
    found: dict[str, Sequence[int]] = {}
    length_before = 0
    read_entry = _entry_struct(0).unpack_from
    entry_size = _entry_struct(0).size
    # Entries mostly have one partition and a name as long as the one before: one read for all.
    last_start = len(data) - entry_size
    for _ in range(topics):
        if position <= last_start:
            length, raw, count, number = read_entry(data, position)
            if length == length_before and count == 1:
                position += entry_size
                name = _decoded_name(raw)
                found[name] = (*found[name], number) if name in found else (number,)
                continue
        (length,) = _INT16.unpack_from(data, position)
        name_end = position + 2 + length
        (count,) = _INT32.unpack_from(data, name_end)
        numbers_at = name_end + 4
        if length < 0 or count < 0 or numbers_at + 4 * count > len(data):
            raise ProtocolError(f"{count} partitions do not fit in {len(data)} bytes")
        name = _decoded_name(data[position + 2 : name_end])
        numbers = struct.unpack_from(f">{count}i", data, numbers_at)
        found[name] = (*found[name], *numbers) if name in found else numbers
        position = numbers_at + 4 * count
        if length != length_before:
            entry = _entry_struct(length)
            length_before, read_entry, entry_size = length, entry.unpack_from, entry.size
            last_start = len(data) - entry_size
    return found, position


@lru_cache(maxsize=256)
def _entry_struct(name_length: int) -> struct.Struct:
    return struct.Struct(f">h{name_length}sii")


@lru_cache(maxsize=4096)
def _encoded_name(topic: str) -> bytes:
    data = topic.encode()
    return _INT16.pack(len(data)) + data


@lru_cache(maxsize=4096)
def _decoded_name(data: bytes) -> str:
    return data.decode()
