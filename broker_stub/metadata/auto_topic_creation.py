"""Creates topics that a client asks for and that are missing: `auto.create.topics.enable`.

Also tells what `__consumer_offsets` is created with. Serving thread only.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.metadata.controller import Controller
from broker_stub.metadata.image import CONSUMER_OFFSETS, TRANSACTION_STATE, ClusterImage
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.metadata.topics import NewTopic, PlannedTopic
from pyclient.error_codes import BrokerResponseError, TopicExistsError

# One has its own log; for the other there is no coordinator that could write to it.
_NEVER_CREATED: Final = (CLUSTER_METADATA, TRANSACTION_STATE)


def offsets_topic(config: BrokerConfig) -> NewTopic:
    """`__consumer_offsets` as the broker creates it."""
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
    """Those of the topics that do not exist and may be created; none if that is disabled."""
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
    """Create the topics; `done` gets the errors of those that could not be, by name."""

    def created(results: list[PlannedTopic | BrokerResponseError]) -> None:
        done(
            {
                topic.name: result
                for topic, result in zip(topics, results, strict=True)
                if isinstance(result, BrokerResponseError)
                # Another client was faster: the topic exists, which is all that was wanted.
                and not isinstance(result, TopicExistsError)
            }
        )

    controller.create_topics(topics, created)
