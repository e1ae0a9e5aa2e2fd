"""The files and folders below a data directory, by Kafka's names.

- `checkpoint_file`: Kafka's checkpoint format
- `data_dir`: the root: `meta.properties`, `.lock`, the clean-shutdown marker
- `file_names`: segment file names, and scanning a folder for them
- `file_slice`: a range of an open file, sent with sendfile
- `offset_checkpoints`: the checkpoints of offsets in the root
- `open_files`: an LRU of open files, and every fsync
- `partition_dir`: creates and syncs a partition's folder
- `partition_metadata`: `partition.metadata`, the topic id
"""
