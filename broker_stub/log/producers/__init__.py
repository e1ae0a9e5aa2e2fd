"""The state of idempotent and transactional producers in a partition.

- `producer_state`: epochs, sequences and open transactions, per producer
- `recall`: reads the older of a producer's last five batches from the log's tail
- `replay`: rebuilds the state when a log is opened
- `sequence_check`: finds duplicate and out-of-order sequences and fenced epochs
- `snapshot`: `.snapshot` files
- `transactions`: the effect of transaction markers
"""
