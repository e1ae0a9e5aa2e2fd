"""The offsets of a group and of partitions.

- `auto_commit`: what is committed automatically, and when
- `commit`: OffsetCommit requests (I/O thread)
- `commit_calls`: commits from the caller's thread, with or without waiting
- `committed`: OffsetFetch requests: committed offsets, for the program and at the start
- `named_commits`: commits that a broker took by the topic's name
- `list_offsets`: ListOffsets requests: offsets by time
- `reset`: `auto.offset.reset`, and seeks to the beginning or end
- `validation`: OffsetForLeaderEpoch requests: was the log truncated below a position?
"""
