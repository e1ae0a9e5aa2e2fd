"""The cluster's state: an image, built from an append-only log that only the controller writes.

- `auto_topic_creation`: creates the topics that clients ask for and that are missing
- `config_changes`: checks changes of configurations, and makes their records
- `controller`: decides, logs and applies changes, one after another
- `elections`: gives partitions without a leader one
- `features`: the cluster's feature levels
- `frames`: metadata records as values of the log
- `image`: brokers, topics, partitions and configurations
- `loading`: builds the image at start, and refuses folders of several nodes
- `log`: the metadata log, `__cluster_metadata-0`
- `placement`: which brokers and folders get new partitions
- `producer_ids`: hands out producer ids
- `quorum`: the controllers that a log of Apache Kafka names
- `reassignments`: checks moves of partitions to other brokers
- `snapshots`: reads Apache Kafka's snapshots of the log
- `topics`: checks new topics and partitions, and makes their records
"""
