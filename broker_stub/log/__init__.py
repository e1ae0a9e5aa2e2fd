"""The storage of partitions: Kafka's own files, byte for byte.

`log_manager` owns a node's folders; `partition_log` is one partition, made of `segment`s with
their `indexes`; `recovery` opens what a crash left behind. No sockets and no protocol messages
here. The serving thread appends and reads; one background thread flushes, deletes and expires.
"""
