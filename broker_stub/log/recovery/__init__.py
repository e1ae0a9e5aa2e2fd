"""Opening a partition after a clean stop, or a crash.

- `log_recovery`: opens a partition's folder and rebuilds what is missing
- `swap_recovery`: finishes or undoes an interrupted compaction
"""
