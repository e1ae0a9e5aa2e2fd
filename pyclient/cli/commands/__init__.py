"""One file per command, each with the command as `command`.

- `topics`, `configs`, `groups`: what a cluster has
- `produce`, `consume`: records
- `broker`: the embedded broker
- `completion`: shell completion
"""
