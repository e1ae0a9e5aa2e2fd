"""The parts of a classic rebalance that run the program's assignors. The caller's thread only.

`classic.py` posts these as the `work` of a `RebalanceStep`, and reads the result when it is done.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pyclient.consumer.group.assignors import AbstractPartitionAssignor, RebalanceProtocol
from pyclient.consumer.group.leader import GroupLeader
from pyclient.errors import KafkaError
from pyclient.metadata import ClusterMetadata
from pyclient.protocol.messages.join_group import JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequestAssignment


class PreparedJoin(NamedTuple):
    """What a join needs of the assignors."""

    topics: frozenset[str]
    user_data: dict[str, bytes | None]
    """By the assignor's name, in order of preference."""


class LedRebalance(NamedTuple):
    """How far the leader's part of a rebalance has got."""

    leader: GroupLeader
    metadata_version: int
    assignments: list[SyncGroupRequestAssignment] | None
    """None: the metadata lacks topics that other members read."""


def prepare_join(
    assignors: Mapping[str, AbstractPartitionAssignor], topics: frozenset[str]
) -> PreparedJoin:
    """Ask the assignors what to tell the leader."""
    return PreparedJoin(
        topics, {name: one.subscription_user_data(topics) for name, one in assignors.items()}
    )


def lead(
    assignor: AbstractPartitionAssignor,
    response: JoinGroupResponse,
    protocol: RebalanceProtocol,
    snapshot: ClusterMetadata,
) -> LedRebalance:
    """Read the members' subscriptions, and assign if the metadata has all topics."""
    leader = GroupLeader(assignor, response.members, protocol, response.skip_assignment)
    if not leader.knows_all(snapshot):
        return LedRebalance(leader, snapshot.version, None)
    return assign(leader, snapshot)


def assign(leader: GroupLeader, snapshot: ClusterMetadata) -> LedRebalance:
    """Assign all partitions that the metadata has."""
    return LedRebalance(leader, snapshot.version, leader.assign(snapshot))


def assignor_failed(cause: BaseException) -> KafkaError:
    """What the program gets to see of its assignor's exception."""
    if isinstance(cause, KafkaError):
        return cause
    error = KafkaError(f"the assignor failed: {cause!r}")
    error.__cause__ = cause
    return error
