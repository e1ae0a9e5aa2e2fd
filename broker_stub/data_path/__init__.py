"""Produce, Fetch and OffsetCommit without the codec: requests parsed and responses packed by hand.

Only a fast path: `replica/` and `coordinator/` decide what happens, for these as for the handlers.
A request is taken as a whole or not at all. What is unusual (tagged fields, transactional ids, null
records, malformed bytes) is left, with nothing done, to the codec and the handler.

- `fetch`: from the frame to file ranges
- `produce`: from the frame to the logs
- `offset_commit`: from the frame to the group's log
- `wire`: the wire pieces that they share
"""
