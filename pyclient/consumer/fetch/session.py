"""Incremental fetch sessions (KIP-227): telling a broker only what changed since the last fetch.

One object per broker, touched by the I/O thread only. A session that the broker did not open, or
has dropped, costs one full request and nothing else.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyclient.error_codes import NONE, FetchSessionIdNotFoundError, for_code
from pyclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from pyclient.protocol.primitives import ZERO_UUID, Uuid
from pyclient.types import TopicPartition

log = logging.getLogger(__name__)

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1


class SessionPartition(NamedTuple):
    """How one partition is fetched; sent again only when it has changed."""

    topic_id: Uuid
    fetch_offset: int
    max_bytes: int
    leader_epoch: int


class FetchSession:
    """The session with one broker."""

    def __init__(self, node: int, enabled: bool = True) -> None:
        self.node = node
        self._enabled = enabled
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH if enabled else FINAL_EPOCH
        self._partitions: dict[TopicPartition, SessionPartition] = {}
        self._topic_names: dict[Uuid, str] = {}
        self._is_renewal_due = False

    @property
    def partitions(self) -> Mapping[TopicPartition, SessionPartition]:
        """What the last request asked for, said or implied."""
        return self._partitions

    def is_incremental(self) -> bool:
        """Whether the broker remembers the partitions."""
        return self._epoch > INITIAL_EPOCH

    def fill(
        self, request: FetchRequest, wanted: Mapping[TopicPartition, SessionPartition]
    ) -> None:
        """Fill in the partitions that the broker needs to know to serve `wanted`."""
        if self._is_renewal_due or any(
            partition in self._partitions and self._partitions[partition].topic_id != want.topic_id
            for partition, want in wanted.items()
        ):
            # The topic was recreated: by name, a broker could not tell the two apart.
            self._restart(keep_id=True)
            self._is_renewal_due = False
        request.session_id, request.session_epoch = self._id, self._epoch
        if self.is_incremental():
            changed = {
                partition: want
                for partition, want in wanted.items()
                if self._partitions.get(partition) != want
            }
            request.topics = _topics(changed)
            request.forgotten_topics_data = _forgotten(
                [(tp, had.topic_id) for tp, had in self._partitions.items() if tp not in wanted]
            )
        else:
            request.topics = _topics(wanted)
        self._partitions = dict(wanted)
        self._topic_names = {want.topic_id: tp.topic for tp, want in wanted.items()}

    @property
    def takes_changes(self) -> bool:
        """Whether the next request may be made by `fill_changes`."""
        return self.is_incremental() and not self._is_renewal_due

    def fill_changes(
        self, request: FetchRequest, changed: Mapping[TopicPartition, SessionPartition]
    ) -> None:
        """Fill in what changed since the last request; the other partitions stay as they were."""
        request.session_id, request.session_epoch = self._id, self._epoch
        request.topics = _topics(changed)
        self._partitions.update(changed)

    def topic_name(self, name: str, topic_id: Uuid) -> str | None:
        """The topic of a response, which names it by id from version 13 on."""
        return name if topic_id == ZERO_UUID else self._topic_names.get(topic_id)

    def on_response(self, response: FetchResponse) -> bool:
        """Update the session; False if the response cannot be used."""
        if response.error_code != NONE:
            error = for_code(response.error_code)
            log.info("node %d refused fetch session %d: %s", self.node, self._id, error.name)
            self._restart(keep_id=error is not FetchSessionIdNotFoundError)
            return False
        answered = {partition for partition, _ in self.answers(response)}
        count = sum(len(topic.partitions) for topic in response.responses)
        if len(answered) != count or not answered <= self._partitions.keys():
            log.warning("node %d returned partitions that were not fetched", self.node)
            self._restart(keep_id=self.is_incremental())
            return False
        if not self.is_incremental():
            return self._on_full_response(response, answered)
        if response.session_id == NO_SESSION:  # the broker has closed it with this answer
            self._restart(keep_id=False)
        else:
            self._epoch = INITIAL_EPOCH + 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def _on_full_response(self, response: FetchResponse, answered: set[TopicPartition]) -> bool:
        if answered != self._partitions.keys():
            # A throttled client gets an empty answer, whatever it asked (KIP-219).
            if answered or not response.throttle_time_ms:
                log.warning("node %d left out partitions of a full fetch", self.node)
            self._restart(keep_id=False)
            return False
        if self._enabled and response.session_id != NO_SESSION:
            self._id, self._epoch = response.session_id, INITIAL_EPOCH + 1
        else:
            self._restart(keep_id=False)
        return True

    def answers(self, response: FetchResponse) -> Iterable[tuple[TopicPartition, PartitionData]]:
        """The partitions of a response under their topics' names."""
        for topic in response.responses:
            name = self.topic_name(topic.topic, topic.topic_id)
            if name is not None:
                for data in topic.partitions:
                    yield TopicPartition(name, data.partition_index), data

    def renew(self) -> None:
        """Name all partitions in the next request: the broker may have forgotten some."""
        self._is_renewal_due = True

    def on_failure(self) -> None:
        """No response came: start a new session, because the broker's state is unknown."""
        self._restart(keep_id=True)

    def _restart(self, keep_id: bool) -> None:
        """Ask for everything next; a kept id has the broker drop the old session with that."""
        if not keep_id:
            self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH if self._enabled else FINAL_EPOCH


def _topics(wanted: Mapping[TopicPartition, SessionPartition]) -> list[FetchTopic]:
    topics: dict[tuple[str, Uuid], list[FetchPartition]] = {}
    for partition, want in wanted.items():
        topics.setdefault((partition.topic, want.topic_id), []).append(
            FetchPartition(
                partition=partition.partition,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.fetch_offset,
                partition_max_bytes=want.max_bytes,
            )
        )
    return [
        FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)
        for (name, topic_id), partitions in topics.items()
    ]


def _forgotten(partitions: Sequence[tuple[TopicPartition, Uuid]]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, Uuid], list[int]] = {}
    for partition, topic_id in partitions:
        topics.setdefault((partition.topic, topic_id), []).append(partition.partition)
    return [
        ForgottenTopic(topic=name, topic_id=topic_id, partitions=numbers)
        for (name, topic_id), numbers in topics.items()
    ]
