"""Record batches as the log sees them.

- `batch_checker`: whether the bytes at a position of a file are a whole batch
- `append_info`: what one append did: offsets, timestamps, duplicates
- `header`: the 61-byte header, read and patched in place
- `rewriting`: a batch with fewer records, for compaction
- `validation`: what a batch must satisfy before it is written
"""
