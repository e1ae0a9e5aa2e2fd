"""The exactly-once sink: tasks prepare transactions, the driver decides and commits them.

docs/spark-exactly-once.md has the protocol and what each crash leaves.

- `names`: the names of transactional ids and groups, and what tasks tell the driver
- `sink`: the options, and the Kafka clients that they make
- `task`: writes one task's rows in a transaction and leaves it open
- `decisions`: the log of decisions, owned by one driver at a time
- `endings`: ends transactions, and finds out how they ended
- `driver`: decides, commits, rolls forward, aborts
- `writers`: what Spark calls
- `recovery`: calls for users: finish a write, settle a batch by hand
- `failures`: the errors
"""
