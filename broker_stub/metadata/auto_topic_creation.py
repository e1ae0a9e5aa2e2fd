"""Creates missing topics that a client asks for: `auto.create.topics.enable`.

Also defines how `__consumer_offsets` is created. Serving thread only.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.metadata.controller import Controller
from broker_stub.metadata.image import CONSUMER_OFFSETS, TRANSACTION_STATE, ClusterImage
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.metadata.topics import NewTopic, PlannedTopic
from pyclient.error_codes import BrokerResponseError, TopicExistsError

# The first is the metadata log; the second would need a transaction coordinator.
_NEVER_CREATED: Final = (CLUSTER_METADATA, TRANSACTION_STATE)


def offsets_topic(config: BrokerConfig) -> NewTopic:
    """How the broker creates `__consumer_offsets`."""
    return NewTopic(
        CONSUMER_OFFSETS,
        partitions=config["offsets.topic.num.partitions"],
        replication_factor=config["offsets.topic.replication.factor"],
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config["offsets.topic.segment.bytes"]),
        },
    )


def missing_topics(
    names: Iterable[str], image: ClusterImage, config: BrokerConfig
) -> list[NewTopic]:
    """The topics that do not exist and may be created; none if creation is disabled."""
    if not config["auto.create.topics.enable"]:
        return []
    return [
        offsets_topic(config) if name == CONSUMER_OFFSETS else NewTopic(name)
        for name in names
        if name not in _NEVER_CREATED and image.topic(name) is None
    ]


def create_missing_topics(
    controller: Controller,
    topics: list[NewTopic],
    done: Callable[[Mapping[str, BrokerResponseError]], None],
) -> None:
    """Create the topics; `done` gets the errors of those that failed, by name."""

    def created(results: list[PlannedTopic | BrokerResponseError]) -> None:
        done(
            {
                topic.name: result
                for topic, result in zip(topics, results, strict=True)
                if isinstance(result, BrokerResponseError)
                # Another client created it first, which is just as good.
                and not isinstance(result, TopicExistsError)
            }
        )

    controller.create_topics(topics, created)
