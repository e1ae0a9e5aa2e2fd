"""The states of a classic group's member, and the changes between them that are allowed."""

from enum import Enum
from typing import Final


class MemberState(Enum):
    """Where a member is between two generations."""

    UNJOINED = "unjoined"  # about to join
    REVOKING = "revoking"  # the caller's thread gives the partitions up
    JOINING = "joining"
    SYNCING = "syncing"
    ASSIGNING = "assigning"  # the caller's thread takes the partitions
    STABLE = "stable"
    FENCED = "fenced"  # removed from the group; the caller's thread has yet to learn it
    LEFT = "left"


# Besides these, every state may end in LEFT: a program may close or unsubscribe any time.
TRANSITIONS: Final = {
    MemberState.UNJOINED: {MemberState.REVOKING, MemberState.JOINING, MemberState.FENCED},
    MemberState.REVOKING: {MemberState.UNJOINED},
    MemberState.JOINING: {MemberState.SYNCING, MemberState.UNJOINED},
    MemberState.SYNCING: {MemberState.ASSIGNING, MemberState.UNJOINED},
    MemberState.ASSIGNING: {MemberState.STABLE, MemberState.UNJOINED},
    MemberState.STABLE: {MemberState.UNJOINED},
    MemberState.FENCED: {MemberState.UNJOINED},
    MemberState.LEFT: {MemberState.UNJOINED},
}

# Where the coordinator expects heartbeats.
IN_SESSION: Final = frozenset(
    {MemberState.REVOKING, MemberState.SYNCING, MemberState.ASSIGNING, MemberState.STABLE}
)
