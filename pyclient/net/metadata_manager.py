"""Keeps the cluster metadata up to date: by age, on request, and for new topics.

The I/O thread owns it. Other threads read `snapshot`, call the methods under "from any thread"
(they only queue a command), and wait here for metadata.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from pyclient.clock import Clock
from pyclient.error_codes import RebootstrapRequiredError, for_code
from pyclient.errors import (
    Cancelled,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    UnknownTopicOrPartitionError,
)
from pyclient.metadata import ClusterMetadata, TopicMetadata
from pyclient.net.network_client import NetworkClient
from pyclient.net.request_manager import NOTHING_TO_DO, Outcome, PollResult, UnsentRequest
from pyclient.net.waiting import Waiter, Waiting
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from pyclient.timers import Deadline, ExponentialBackoff
from pyclient.types import BrokerMetadata, TopicPartition

if TYPE_CHECKING:
    from pyclient.net.io_thread import IoThread

log = logging.getLogger(__name__)


class MetadataManager:
    """The snapshot, and the requests that update it.

    Attributes:
        snapshot: what is known now. Any thread may read it.
        failure: why the last request for more failed, if it did. Any thread may read it.
        last_used_ms: returns when a topic was last used, apart from requests for its metadata;
            infinity while it is in use.
    """

    def __init__(
        self,
        network: NetworkClient,
        io_thread: IoThread,
        clock: Clock,
        waiting: Waiting,
        backoff: ExponentialBackoff,
        *,
        max_age_ms: float,
        allow_auto_create_topics: bool,
        max_idle_ms: float = math.inf,
        rebootstrap_trigger_ms: float = math.inf,
    ) -> None:
        self.snapshot = ClusterMetadata()
        self.failure: KafkaError | None = None
        self._network = network
        self._io_thread = io_thread
        self._clock = clock
        self._waiting = waiting
        self._backoff = backoff
        self._max_age_ms = max_age_ms
        self._max_idle_ms = max_idle_ms
        self.last_used_ms: Callable[[str], float] = _never
        self._allow_auto_create_topics = allow_auto_create_topics
        self._rebootstrap_trigger_ms = rebootstrap_trigger_ms
        # When each was asked for. None: all there are.
        self._topics: dict[str, float] | None = {}
        self._new_topics: dict[str, None] = {}  # of these, never described yet
        self._listeners: list[Callable[[ClusterMetadata], None]] = []
        # A deque: callers append while the I/O thread empties it, and both are atomic.
        self._waiters: deque[Waiter] = deque()
        self._closed: KafkaError | None = None
        self._wanted = True  # a full update; the first one finds the cluster
        self._in_flight = False
        self._attempts = 0  # without a complete answer
        self._not_before_ms = -math.inf
        self._fresh_until_ms = -math.inf
        self._failing_since_ms = math.inf

    def on_disconnect(self) -> None:
        """A connection failed: leaders may have moved. I/O thread."""
        self.request_update()
        if self._network.is_refused_everywhere():
            self._wake_waiters()

    # --- from any thread ---------------------------------------------------------------------

    def request_update(self) -> None:
        """Request an update soon. Repeated calls cost nothing: requests have a back-off."""
        self._wanted = True
        self._io_thread.wake()

    def add_topic(self, topic: str) -> None:
        """Keep the metadata of a topic; request it at once if it is not known."""
        self._io_thread.submit(lambda: self._add_topic(topic))

    def set_topics(self, topics: Iterable[str] | None) -> None:
        """Keep the metadata of exactly these topics; None for all topics."""
        names = None if topics is None else dict.fromkeys(topics, math.inf)
        self._io_thread.submit(lambda: self._set_topics(names))

    def forget_topic(self, topic: str) -> None:
        """Drop the metadata of a topic."""
        self._io_thread.submit(lambda: self._forget_topic(topic))

    def wait_for_topic(self, topic: str, timeout_ms: float) -> TopicMetadata:
        """Wait for a topic's metadata.

        Raises:
            KafkaTimeoutError: there is none; says what stands in the way.
            InvalidTopicError, TopicAuthorizationError: the brokers will never give one.
        """
        known = self.snapshot
        if (found := known.topics.get(topic)) is not None:
            return found
        self.add_topic(topic)
        began_ms = self._clock.monotonic_ms()
        deadline = Deadline(self._clock, timeout_ms)
        while True:
            snapshot = self._next_snapshot(known, deadline)
            if snapshot is None:
                elapsed_ms = min(self._clock.monotonic_ms() - began_ms, timeout_ms)
                raise KafkaTimeoutError(self._why_not_described(topic, elapsed_ms))
            if (found := snapshot.topics.get(topic)) is not None:
                return found
            error = snapshot.topic_errors.get(topic)
            if error is not None and not error.retriable:
                raise error(f"topic {topic!r}")
            known = snapshot

    def wait_for_update(self, seen: ClusterMetadata, timeout_ms: float) -> ClusterMetadata:
        """Wait for a snapshot other than `seen`.

        Raises:
            KafkaTimeoutError: there was none in time; says what stands in the way.
        """
        began_ms = self._clock.monotonic_ms()
        snapshot = self._next_snapshot(seen, Deadline(self._clock, timeout_ms))
        if snapshot is None:
            elapsed_ms = min(self._clock.monotonic_ms() - began_ms, timeout_ms)
            raise KafkaTimeoutError(f"no metadata after {elapsed_ms:.0f} ms: {self._troubles()}")
        return snapshot

    def _next_snapshot(self, seen: ClusterMetadata, deadline: Deadline) -> ClusterMetadata | None:
        while True:
            waiter = self._waiting.waiter()
            self._waiters.append(waiter)  # before the look, or an update could slip between
            if self.snapshot is not seen:
                return self.snapshot
            if self._closed is not None:
                raise self._closed
            if not seen.version and self._network.is_refused_everywhere():
                return None  # no broker ever answered: waiting does not help
            if not waiter.wait(deadline.remaining_ms()):
                return None

    def _why_not_described(self, topic: str, elapsed_ms: float) -> str:
        error = self.snapshot.topic_errors.get(topic)
        start = f"no metadata for topic {topic!r} after {elapsed_ms:.0f} ms: "
        if error is UnknownTopicOrPartitionError:
            return (
                f"{start}it does not exist, and the brokers do not create topics automatically. "
                "Check the spelling, or create the topic (KafkaAdminClient.create_topics)"
            )
        if error is not None:
            return f"{start}{error()}"
        return start + self._troubles()

    def _troubles(self) -> str:
        troubles = self._network.troubles(self._clock.monotonic_ms())
        return "; ".join(troubles) or str(self.failure or "no broker has answered yet")

    # --- on the I/O thread -------------------------------------------------------------------

    def keep_topic(self, topic: str) -> None:
        """Keep the metadata of a topic that may have been dropped as idle."""
        if self._topics is not None and topic not in self._topics:
            self._add_topic(topic)

    def add_listener(self, listener: Callable[[ClusterMetadata], None]) -> None:
        """Call `listener` on the I/O thread with each new snapshot. Before the engine starts."""
        self._listeners.append(listener)

    def update_leaders(
        self,
        leaders: Mapping[TopicPartition, tuple[int, int]],
        endpoints: Iterable[BrokerMetadata],
    ) -> None:
        """Use newer leaders, (id, epoch) each, that a Produce or Fetch response named (KIP-951)."""
        snapshot = self.snapshot.with_leaders(leaders, endpoints)
        if snapshot is not self.snapshot:
            self._network.set_brokers(snapshot.brokers.values(), self._clock.monotonic_ms())
            self._publish(snapshot)

    def poll(self, now_ms: float) -> PollResult:
        """A Metadata request, when one is due."""
        if self._in_flight:
            return NOTHING_TO_DO
        due = self._wanted or self._new_topics
        due_ms = self._not_before_ms if due else max(self._fresh_until_ms, self._not_before_ms)
        if now_ms < due_ms:
            return PollResult(next_poll_ms=due_ms)
        if self._failing_since_ms + self._rebootstrap_trigger_ms <= now_ms:
            self._network.rebootstrap()
            self._failing_since_ms = now_ms
        # Only the new topics, unless everything is wanted anyway.
        partial = not self._wanted and now_ms < self._fresh_until_ms
        if not partial:
            self._forget_idle(now_ms)
        names = self._new_topics if partial else self._topics
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=one) for one in names],
            allow_auto_topic_creation=self._allow_auto_create_topics,
        )
        asked = dict(self._new_topics)
        self._wanted = False
        self._in_flight = True

        def on_done(outcome: Outcome, done_ms: float) -> None:
            self._in_flight = False
            if not isinstance(outcome, Cancelled):  # else the client is being closed
                self._on_response(outcome, asked, partial, done_ms)

        return PollResult([UnsentRequest(request, None, on_done)])

    def close(self, error: KafkaError) -> None:
        """Fail all callers that wait for metadata."""
        self._closed = error
        self._wake_waiters()

    def _on_response(
        self, outcome: Outcome, asked: Mapping[str, None], partial: bool, now_ms: float
    ) -> None:
        if isinstance(outcome, KafkaError):
            error: KafkaError | None = outcome
        else:
            error = self._take_in(outcome, partial, now_ms)
        self.failure = error
        if error is not None:
            log.warning("Updating the metadata failed: %s", error)
            self._wanted = self._wanted or not partial
            self._failing_since_ms = min(self._failing_since_ms, now_ms)
            self._try_again(now_ms)
            return
        for topic in asked:
            self._new_topics.pop(topic, None)
        self._failing_since_ms = math.inf
        if not partial:
            self._fresh_until_ms = now_ms + self._max_age_ms
        if self._is_complete():
            self._attempts = 0
            self._not_before_ms = now_ms + self._backoff.backoff_ms(0)
        else:
            self._wanted = True
            self._try_again(now_ms)

    def _take_in(self, response: object, partial: bool, now_ms: float) -> KafkaError | None:
        assert isinstance(response, MetadataResponse)
        if response.error_code:
            error = for_code(response.error_code)()
            if isinstance(error, RebootstrapRequiredError):
                self._network.rebootstrap()
            return error
        if not response.brokers:
            return ProtocolError("a metadata response without brokers")
        try:
            snapshot = self.snapshot.updated(response, partial=partial)
        except ProtocolError as error:
            return error
        self._network.set_brokers(snapshot.brokers.values(), now_ms)
        self._publish(snapshot)
        return None

    def _is_complete(self) -> bool:
        """Whether nothing is missing that a later answer could bring."""
        snapshot = self.snapshot
        if any(error.retriable for error in snapshot.topic_errors.values()):
            return False
        return all(len(one.available) == len(one.partitions) for one in snapshot.topics.values())

    def _try_again(self, now_ms: float) -> None:
        self._not_before_ms = now_ms + self._backoff.backoff_ms(self._attempts)
        self._attempts += 1

    def _publish(self, snapshot: ClusterMetadata) -> None:
        self.snapshot = snapshot
        for listener in self._listeners:
            listener(snapshot)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        while self._waiters:
            self._waiters.popleft().wake()

    def _add_topic(self, topic: str) -> None:
        if self._topics is not None:
            self._topics[topic] = self._clock.monotonic_ms()
        if topic not in self.snapshot.topics:
            self._new_topics[topic] = None
            if self._failing_since_ms == math.inf:
                self._not_before_ms = -math.inf  # no back-off for a new topic

    def _set_topics(self, names: dict[str, float] | None) -> None:
        if names is None:
            self._wanted = self._wanted or self._topics is not None
            self._topics = None
            return
        old, self._topics = self._topics, names
        known = (*self.snapshot.topics, *self.snapshot.topic_errors)
        gone = [topic for topic in known if topic not in names]
        if gone:
            self._publish(self.snapshot.without_topics(gone))
        self._new_topics = {topic: None for topic in self._new_topics if topic in names}
        for topic in names:
            if old is None or topic not in old:
                self._add_topic(topic)
                names[topic] = math.inf

    def _forget_topic(self, topic: str) -> None:
        if self._topics is not None and topic in self._topics:
            del self._topics[topic]
            self._new_topics.pop(topic, None)
            self._publish(self.snapshot.without_topics([topic]))

    def _forget_idle(self, now_ms: float) -> None:
        """Drop topics that were unused for `metadata.max.idle.ms`."""
        since_ms = now_ms - self._max_idle_ms
        idle = [
            topic
            for topic, asked_ms in (self._topics or {}).items()
            if asked_ms <= since_ms and self.last_used_ms(topic) <= since_ms
        ]
        for topic in idle:
            log.debug("Dropping topic %s: unused for metadata.max.idle.ms", topic)
            self._forget_topic(topic)


def _never(_topic: str) -> float:
    return -math.inf
