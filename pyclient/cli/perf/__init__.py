"""`pyclient perf`: load tests with the options and output of Kafka's own.

- `consume`, `end_to_end`, `produce`, `verify`: a command each
- `group`: the commands together, and `perf report`
- `outcome`: options and output that they share
"""
