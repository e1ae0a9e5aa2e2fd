"""The states of a classic group's member, and the changes between them that are allowed."""

from enum import Enum
from typing import Final


class MemberState(Enum):
    """Where a member is between two generations."""

    UNJOINED = "unjoined"  # about to join
    PREPARING = "preparing"  # the caller's thread gives partitions up, and asks the assignors
    JOINING = "joining"
    LEADING = "leading"  # the caller's thread runs the assignor, for all members
    SYNCING = "syncing"
    ASSIGNING = "assigning"  # the caller's thread takes the partitions
    STABLE = "stable"
    FENCED = "fenced"  # removed from the group; the caller's thread has yet to learn it
    LEFT = "left"


# Besides these, every state may end in LEFT: a program may close or unsubscribe any time.
TRANSITIONS: Final = {
    MemberState.UNJOINED: {MemberState.PREPARING, MemberState.JOINING, MemberState.FENCED},
    MemberState.PREPARING: {MemberState.UNJOINED},
    MemberState.JOINING: {MemberState.LEADING, MemberState.SYNCING, MemberState.UNJOINED},
    MemberState.LEADING: {MemberState.SYNCING, MemberState.UNJOINED},
    MemberState.SYNCING: {MemberState.ASSIGNING, MemberState.UNJOINED},
    MemberState.ASSIGNING: {MemberState.STABLE, MemberState.UNJOINED},
    MemberState.STABLE: {MemberState.UNJOINED},
    MemberState.FENCED: {MemberState.UNJOINED},
    MemberState.LEFT: {MemberState.UNJOINED},
}

# Where the coordinator expects heartbeats, of a member that has a generation.
IN_SESSION: Final = frozenset(
    {
        MemberState.PREPARING,
        MemberState.LEADING,
        MemberState.SYNCING,
        MemberState.ASSIGNING,
        MemberState.STABLE,
    }
)

# Where no commit is possible: the old generation is over, and the new one has no assignment yet.
BETWEEN_GENERATIONS: Final = frozenset(
    {MemberState.JOINING, MemberState.LEADING, MemberState.SYNCING}
)

# Where only the caller's thread can continue, inside a poll.
PROGRAM_IS_DUE: Final = frozenset(
    {MemberState.PREPARING, MemberState.LEADING, MemberState.ASSIGNING, MemberState.FENCED}
)

WAITS_FOR: Final = {
    MemberState.PREPARING: "the program's poll, which gives partitions up",
    MemberState.JOINING: "the coordinator's answer to JoinGroup",
    MemberState.LEADING: "the program's poll, which runs the assignor",
    MemberState.SYNCING: "the coordinator's answer to SyncGroup",
    MemberState.ASSIGNING: "the program's poll, which takes the partitions",
    MemberState.FENCED: "the program's poll, which drops the partitions",
}
