"""Record batches as the log sees them.

- `append_info`: numbers the batches of an append, and describes its result
- `batch_checker`: whether the bytes at a position of a file are a whole batch
- `header`: the batch header, read and patched in place
- `record_rules`: a topic's rules for single records
- `recompression`: batches in the codec of their topic
- `rewriting`: a batch with fewer records, for compaction
- `validation`: the checks before a batch is written
"""
