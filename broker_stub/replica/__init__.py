"""The partitions of this broker: appending, reading, and the fetches that wait.

- `append_in_transaction`: appends the transactional batches of a Produce request
- `append_records`: appends the batches of a Produce request; flushes before the ack if asked to
- `delayed_fetch`: answers a Fetch request, or parks it until there is enough to read
- `fetch_sessions`: incremental fetch sessions (KIP-227)
- `in_sync_replicas`: checks `min.insync.replicas`
- `leader_epoch_check`: checks the leader epoch that a client knows
- `manager`: finds partitions, and keeps them in step with the cluster's image
- `partition`: one partition: leader, epoch, in-sync replicas, high watermark
- `read_partitions`: reads the partitions of a Fetch request within its limits
"""
