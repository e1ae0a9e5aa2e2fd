"""Which topics the consumer has to know, and what the cluster says about them.

The I/O thread only. Resolves a pattern to topics, and reports topics that cannot be read: a
consumer of a misspelt topic would wait silently.
"""

import logging
from collections.abc import Iterable

from pyclient.consumer.cluster import Cluster
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.subscription_state import SubscriptionState, SubscriptionType
from pyclient.errors import KafkaError, LeaderNotAvailableError
from pyclient.metadata import ClusterMetadata

log = logging.getLogger(__name__)


class TopicInterest:
    """Keeps the metadata of the topics that are read."""

    def __init__(
        self,
        subscription: SubscriptionState,
        cluster: Cluster,
        inbox: Inbox,
        exclude_internal_topics: bool,
    ) -> None:
        self._subscription = subscription
        self._cluster = cluster
        self._inbox = inbox
        self._exclude_internal_topics = exclude_internal_topics
        self._troubles: dict[str, type[KafkaError]] = {}
        self._others: frozenset[str] = frozenset()
        self._all_topics_after: int | None = None  # the version before all were asked for

    def refresh(self) -> None:
        """Ask for the topics that are subscribed to or assigned now."""
        if self._subscription.type is SubscriptionType.PATTERN:
            if self._all_topics_after is None:
                self._all_topics_after = self._cluster.snapshot.version
                self._cluster.set_topics(None)
            self._match(self._cluster.snapshot)
        else:
            self._all_topics_after = None
            self._cluster.set_topics(sorted(self._subscription.topics_to_know() | self._others))

    def add_others(self, topics: Iterable[str]) -> None:
        """Ask also for what other members read: their leader assigns it."""
        others = frozenset(topics)
        if others != self._others:
            self._others = others
            self.refresh()
        if self.asks_for_all and not others <= self._cluster.snapshot.topics.keys():
            self._cluster.request_update()  # a newer answer may have the missing ones

    @property
    def asks_for_all(self) -> bool:
        """Whether metadata is a list of all topics, and says nothing of those that are missing."""
        return self._all_topics_after is not None

    def is_resolved(self) -> bool:
        """Whether the topics are known by name: a pattern needs a list of all topics first."""
        if self._subscription.type is not SubscriptionType.PATTERN:
            return True
        after = self._all_topics_after
        return after is not None and self._cluster.snapshot.version > after

    def on_metadata(self, snapshot: ClusterMetadata) -> bool:
        """Look at a new snapshot; tell whether the subscribed topics changed by it."""
        changed = self._match(snapshot)
        for topic in self._subscription.topics_to_know():
            self._report(topic, snapshot.topic_errors.get(topic))
        return changed

    def _match(self, snapshot: ClusterMetadata) -> bool:
        if not self.is_resolved():
            return False
        return self._subscription.match_topics(
            name
            for name, topic in snapshot.topics.items()
            if not (self._exclude_internal_topics and topic.is_internal)
        )

    def _report(self, topic: str, error: type[KafkaError] | None) -> None:
        if error is self._troubles.get(topic):
            return  # reported already
        if error is None:
            del self._troubles[topic]
            return
        self._troubles[topic] = error
        if error is LeaderNotAvailableError:
            log.debug("topic %r is being created", topic)
        elif error.retriable:
            log.warning(
                "topic %r cannot be read yet: %s Check the spelling, or create the topic.",
                topic,
                error(),
            )
        else:
            self._inbox.post_error(error(f"topic {topic!r}"))
