"""What is in the files of a partition, in the words of Kafka's `kafka-dump-log`. Reads only.

- `files`: any file, by its name
- `segment_dump`: `.log` and `.checkpoint` files: batches, records, control records
- `index_dump`: indexes, compared with the log beside them
- `lines`: a line of output, and the faults that are found
"""
