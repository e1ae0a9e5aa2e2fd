"""When the first unread record of each partition was written: fetches one batch of each."""

from collections.abc import Mapping
from typing import Any, Final

from pyclient.admin.sending.partition_keys import by_topic, partition_name
from pyclient.admin.sending.requests import AdminRequests
from pyclient.admin.sending.routes import LeaderRoute
from pyclient.admin.sending.work import Work
from pyclient.admin.types.offsets import IsolationLevel
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.records.batch import iter_batches
from pyclient.timers import Deadline
from pyclient.types import TopicPartition

# Most batches fit: producers fill 16 KB by default.
_PARTITION_BYTES: Final = 32 * 1024
_REQUEST_BYTES: Final = 8 * 1024 * 1024


def first_timestamps(
    requests: AdminRequests,
    positions: Mapping[TopicPartition, int],
    level: IsolationLevel,
    deadline: Deadline,
) -> dict[TopicPartition, int | None]:
    """The timestamp of the first record at or after each position; None if it has none."""
    found = _fetch(requests, positions, level, deadline)
    # A broker exceeds its limits for the first partition of a request only. So a batch that is
    # larger comes if its partition is asked for alone.
    for key in [key for key, records in found.items() if not records]:
        found |= _fetch(requests, {key: positions[key]}, level, deadline)
    return {key: _timestamp(records, positions[key]) for key, records in found.items()}


def _fetch(
    requests: AdminRequests,
    positions: Mapping[TopicPartition, int],
    level: IsolationLevel,
    deadline: Deadline,
) -> dict[TopicPartition, Any]:
    if not positions:
        return {}
    outcomes = requests.settle(
        Work(
            {
                key: (
                    key,
                    FetchPartition(
                        partition=key.partition,
                        fetch_offset=offset,
                        partition_max_bytes=_PARTITION_BYTES,
                    ),
                )
                for key, offset in positions.items()
            },
            lambda pending: FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=_REQUEST_BYTES,
                isolation_level=level,
                topics=[
                    FetchTopic(topic=name, partitions=of) for name, of in by_topic(pending).items()
                ],
            ),
            lambda response: (
                (TopicPartition(topic.topic, one.partition_index), one)
                for topic in response.responses
                for one in topic.partitions
            ),
            partition_name,
            LeaderRoute(requests),
            deadline,
            repeatable=True,
        )
    )
    # An error is no record: retention may have deleted it since it was looked up.
    return {key: None if one.error else one.result.records for key, one in outcomes.items()}


def _timestamp(records: Any, position: int) -> int | None:
    latest: int | None = None
    for batch in iter_batches(records or b""):
        for record in batch.decode(from_offset=position):
            return record.timestamp if record.timestamp >= 0 else None
        latest = batch.max_timestamp  # compaction has removed its records from here on
    return latest if latest is None or latest >= 0 else None
