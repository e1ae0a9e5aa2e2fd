"""What a partition remembers of idempotent and transactional producers.

- `sequence_check`: finds duplicate sequences
- `recall`: reads the older of a producer's last five batches from the log's tail
- `replay`: rebuilds producer state when a log is opened
- `snapshot`: `.snapshot` files
- `producer_state`: epochs, sequences and open transactions, per producer
- `transactions`: what a transaction marker does
"""
