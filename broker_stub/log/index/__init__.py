"""The index files of a segment: building, searching and rebuilding them.

- `index_builder`: adds a segment's batches to its indexes
- `index_file`: a file of fixed-size entries; the newest ones are in memory
- `index_search`: finds batches by offset, position or time, and notices damaged indexes
- `reindexing`: rebuilds damaged indexes in the background
- `segment_indexes`: the offset index and the time index of one segment
- `sparse_index`: binary search by offset and by time
- `transaction_index`: `.txnindex`, the aborted transactions
"""
