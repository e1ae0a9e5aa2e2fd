"""The storage of partitions: Kafka's own files, byte for byte.

No sockets and no protocol messages here. The serving thread appends and reads; one background
thread flushes, deletes, compacts and expires.

- `log_manager`: all logs of a node: opens, creates and deletes them
- `housekeeping`: the periodic and requested work of the background thread
- `background_thread`: the thread that runs it
- `partition_log`: the log of one partition
- `segment_list`: its segments in order; finds the one that holds an offset
- `segment`: a range of the log: records and indexes
- `file_records`: the `.log` file of a segment
- `rolling`: when a new segment is started, and how
- `flushing`: `flush.messages`, `flush.ms` and the recovery point
- `leader_epochs`: which leader epoch starts at which offset
- `time_lookup`: finds records by timestamp
- `internal_batches`: builds and reads the batches of internal topics
- `log_config`: the topic-level configuration keys

Rooms: `batch/` (headers, validation, rewriting), `index/` (building, searching, rebuilding),
`producers/` (sequences, transactions, snapshots), `cleaning/` (retention and compaction),
`recovery/` (opening a log, also after a crash), `files/` (names, checkpoints, open files).
"""
