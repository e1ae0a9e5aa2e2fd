"""The files and directories below a data directory, by Kafka's names.

- `checkpoint_file`: Kafka's checkpoint format
- `data_dir`: the root: `meta.properties`, `.lock`, the clean-shutdown marker
- `file_names`: the names of a partition's files
- `file_systems`: syncs all files of a file system in one call
- `file_slice`: a range of an open file, sent with sendfile
- `offset_checkpoints`: the offset checkpoints in the root
- `open_files`: an LRU of open files, and every fsync
- `partition_dir`: creates, writes and syncs a partition's directory
- `partition_metadata`: `partition.metadata`, the topic id
"""
