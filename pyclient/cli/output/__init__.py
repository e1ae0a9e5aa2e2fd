"""What commands print.

- `printing`: tables for people, JSON for scripts
- `numbers`: counts, sizes, times and durations as people read them
"""
