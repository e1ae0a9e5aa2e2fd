"""Creates missing topics that a client asks for: `auto.create.topics.enable`.

Also defines how the internal topics are created. Serving thread only.
"""

from collections.abc import Callable, Iterable, Mapping

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.metadata.controller import Controller
from broker_stub.metadata.image import (
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    TRANSACTION_STATE,
    ClusterImage,
)
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.metadata.topics import NewTopic, PlannedTopic
from pyclient.error_codes import BrokerResponseError, TopicExistsError


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


def transactions_topic(config: BrokerConfig) -> NewTopic:
    """How the broker creates `__transaction_state`."""
    return NewTopic(
        TRANSACTION_STATE,
        partitions=config["transaction.state.log.num.partitions"],
        replication_factor=config["transaction.state.log.replication.factor"],
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
            "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
            "unclean.leader.election.enable": "false",
        },
    )


def internal_topic(name: str, config: BrokerConfig) -> NewTopic:
    """How the broker creates a coordinator's topic."""
    return offsets_topic(config) if name == CONSUMER_OFFSETS else transactions_topic(config)


def missing_topics(
    names: Iterable[str], image: ClusterImage, config: BrokerConfig
) -> list[NewTopic]:
    """The topics that do not exist and may be created; none if creation is disabled."""
    if not config["auto.create.topics.enable"]:
        return []
    return [
        internal_topic(name, config) if name in INTERNAL_TOPICS else NewTopic(name)
        for name in names
        if name != CLUSTER_METADATA and image.topic(name) is None
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
