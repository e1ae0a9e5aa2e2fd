"""Removes records: retention deletes segments, compaction rewrites them.

- `batch_filter`: which records of a batch compaction keeps
- `cleaned_transactions`: which transaction markers it keeps
- `cleaner`: which log is compacted next
- `compaction`: compacts one log
- `offset_map`: the last offset of every key
- `retention`: which segments are deleted, by age and size
- `segment_deletion`: renames the files of removed segments
- `segment_swap`: replaces segments by their compacted one, crash-safe
"""
