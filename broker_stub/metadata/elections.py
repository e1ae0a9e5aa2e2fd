"""Leaders for partitions that have none: a pure function over the image."""

from __future__ import annotations

from broker_stub.metadata.image import ClusterImage
from pyclient.protocol.messages.metadata_records import PartitionChangeRecord
from pyclient.protocol.schema import Message


def elect_leaders(image: ClusterImage, node_id: int) -> list[Message]:
    """The changes that make a broker the leader of all it alone has.

    Apache Kafka gives up the leadership when it stops cleanly.
    """
    return [
        PartitionChangeRecord(
            partition_id=partition.partition_id,
            topic_id=topic.topic_id,
            leader=node_id,
            isr=[node_id],
            # It is in sync, so it need not be remembered as one that was.
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
        for topic in image.topics()
        for partition in topic.partitions.values()
        if partition.leader != node_id and partition.replicas == (node_id,)
    ]
