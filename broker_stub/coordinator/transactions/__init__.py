"""The transaction coordinator: transactional ids, their producers and their transactions.

- `transaction_coordinator`: finds the transaction of a request; timeouts, expiry, the log.
- `transaction`: one transactional id's state machine: what a request decides.
- `transaction_state`: the states, their transitions, and what the log says about one.
- `transaction_log`: transactions as records of `__transaction_state`.
- `markers`: ends a decided transaction in its partitions.
- `admission`: which batches of a Produce request belong to their producer's transaction.
"""
