"""One file per command, each with the command as `command`.

- `topics`, `configs`, `groups`, `transactions`, `cluster`: what a cluster has
- `acls`, `users`, `quotas`: who may do what
- `produce`, `consume`: records
- `broker`: the embedded broker
- `dump_log`: the files of a broker
- `completion`: shell completion
"""
