"""The coordinators, which keep their state in internal topics.

- `groups`: consumer groups and their committed offsets, in `__consumer_offsets`.
- `transactions`: transactions and their coordinator, in `__transaction_state`.
- `errors`: the error a client gets when the log of a coordinator refuses a record.
- `placement`: which partition of a coordinator's topic holds an id.
- `replay`: reads a coordinator's topic back at start.
"""
