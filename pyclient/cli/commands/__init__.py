"""One file per command, each with the command as `command`.

- `completion`: shell completion
"""
