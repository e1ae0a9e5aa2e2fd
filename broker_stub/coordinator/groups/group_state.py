"""The states of a classic group, and the settings of groups and joins."""

from enum import Enum
from typing import NamedTuple


class GroupState(Enum):
    """A group's state, as DescribeGroups and ListGroups name it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupSettings(NamedTuple):
    """The broker's options for groups."""

    initial_rebalance_delay_ms: int
    max_size: int


class JoinTerms(NamedTuple):
    """What the coordinator knows about a join besides the request itself."""

    client_id: str
    client_host: str
    member_id_required: bool  # version 4 and later: a dynamic member has to join twice
    can_skip_assignment: bool  # version 9 and later
