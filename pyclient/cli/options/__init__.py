"""What commands have in common on the command line.

- `cluster`: which cluster, and its configuration
- `profiles`: named clusters in `pyclient.toml`
- `config_names`: Java's and librdkafka's option names, sorted by client
- `types`: types of arguments: times, durations, partitions, key=value
- `confirmation`: asks before something is destroyed
"""
