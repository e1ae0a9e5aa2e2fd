"""The states of a classic group, and the circumstances of a join."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class GroupState(Enum):
    """Where a group stands."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class JoinTerms(NamedTuple):
    """What the coordinator knows of a join besides the request itself."""

    client_id: str
    client_host: str
    member_id_required: bool  # from version 4 on, a dynamic member must come back with its id
    can_skip_assignment: bool  # from version 9 on
