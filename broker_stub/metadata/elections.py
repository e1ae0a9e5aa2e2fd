"""Leaders for partitions: pure functions over the image."""

from typing import Final

from broker_stub.metadata.image import ClusterImage
from pyclient.error_codes import (
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    InvalidRequestError,
    PreferredLeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.metadata_records import PartitionChangeRecord
from pyclient.protocol.schema import Message

PREFERRED, UNCLEAN = 0, 1
_NO_LEADER: Final = -1


def check_election_type(election_type: int) -> None:
    """Refuse an election that is neither preferred nor unclean.

    Raises:
        InvalidRequestError: there is no such type.
    """
    if election_type not in (PREFERRED, UNCLEAN):
        raise InvalidRequestError(f"Unknown election type {election_type}")


def check_election(
    topic_name: str, partition_index: int, election_type: int, image: ClusterImage
) -> None:
    """Refuse an election with the reason: with one broker, no partition can get another leader.

    Raises:
        UnknownTopicOrPartitionError: there is no such partition.
        ElectionNotNeededError: it already has that leader.
        PreferredLeaderNotAvailableError, EligibleLeadersNotAvailableError: no other broker can.
    """
    topic = image.topic(topic_name)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"No such topic as {topic_name}")
    partition = topic.partitions.get(partition_index)
    if partition is None:
        raise UnknownTopicOrPartitionError(f"No such partition as {topic_name}-{partition_index}")
    is_preferred = election_type == PREFERRED
    if partition.leader == partition.replicas[0] or (
        not is_preferred and partition.leader != _NO_LEADER
    ):
        raise ElectionNotNeededError("Leader election not needed for topic partition.")
    if is_preferred:
        raise PreferredLeaderNotAvailableError("The preferred leader was not available.")
    raise EligibleLeadersNotAvailableError("Eligible topic partition leaders are not available.")


def elect_leaders(image: ClusterImage, node_id: int, *, was_clean: bool) -> list[Message]:
    """The changes that make a broker the leader of the partitions that only it has.

    They have no leader after Apache Kafka was shut down cleanly. After an unclean shutdown a broker
    is elected again, also where it leads already: its logs may have lost records, and the new
    leader epoch has consumers find out.
    """
    return [
        PartitionChangeRecord(
            partition_id=partition.partition_id,
            topic_id=topic.topic_id,
            leader=node_id,
            isr=[node_id],
            # It is in the ISR now, so it leaves the eligible leader replicas.
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
        for topic in image.topics()
        for partition in topic.partitions.values()
        if partition.replicas == (node_id,) and (partition.leader != node_id or not was_clean)
    ]
