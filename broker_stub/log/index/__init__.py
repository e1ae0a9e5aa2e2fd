"""The index files of a segment, and how they are built and rebuilt.

- `index_file`: a file of fixed-size entries, with its newest ones in memory
- `index_builder`: adds a segment's batches to its indexes
- `reindexing`: rebuilds damaged indexes in the background
- `segment_indexes`: the offset and the time index of one segment
- `sparse_index`: binary search by offset and by time
- `transaction_index`: `.txnindex`, the aborted transactions
"""
