"""What commands print.

- `printing`: tables for people, JSON for scripts
- `record_format`: kcat's format strings
- `numbers`: counts, sizes, times and durations as people read them
"""
