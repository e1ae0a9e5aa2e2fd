"""Opens a partition's log after a clean shutdown or a crash.

- `folder_scan`: lists the files of a partition
- `log_recovery`: opens the log, and checks and rebuilds what a crash left
- `swap_recovery`: finishes or undoes an interrupted compaction
"""
