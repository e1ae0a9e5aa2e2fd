"""The group coordinator: membership of classic groups and their committed offsets.

- `group_coordinator`: finds the group of a request; commits, deletes and expires offsets.
- `classic_group`: one group's state machine, from the join to the stable generation.
- `admission`: what a JoinGroup request means: new, pending, returning and static members.
- `session_expiration`: where a member's session expires.
- `member`, `roster`: one member; all members of a group, its leader and common assignors.
- `subscriptions`: which topics the members of a generation subscribe to.
- `group_state`: the states, and the settings of groups and joins.
- `commit_offsets`: what becomes of an OffsetCommit request, and when it is answered.
- `commit_batch`: writes the commits of one turn of the server to the log as one batch.
- `offsets`: committed offsets in memory.
- `pending_offsets`: offsets committed in transactions that have not ended.
- `offset_retention`: which committed offsets have expired.
- `group_log`: groups and offsets as records of `__consumer_offsets`.
- `group_loading`: reads those records back at start, and skips what it cannot read.
"""

from broker_stub.coordinator.groups.group_coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
