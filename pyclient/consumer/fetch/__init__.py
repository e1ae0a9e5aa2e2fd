"""From Fetch requests on the I/O thread to records on the caller's thread.

- `aborted`: skips the records of aborted transactions
- `buffer`: what was fetched and not yet returned, bounded in bytes
- `collector`: decodes the buffer for `poll`, and drops stale fetches
- `completed_fetch`: the bytes that one partition got in one response
- `read_replicas`: which replicas to read from instead of the leaders (KIP-392)
- `request_manager`: sends Fetch requests ahead of the polls
- `session`: incremental fetch sessions (KIP-227)
"""
