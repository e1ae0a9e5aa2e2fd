"""A transactional producer: its states, the caller's calls, and the requests of the I/O thread.

- `calls`: the calls of the program: check the state, hand over to the I/O thread, wait
- `coordinators`: finds the coordinators of the transactional id and of groups
- `failures`: which errors end a transaction, and which end the producer
- `manager`: which request comes next, and what responses mean
- `offsets`: offsets of a consumer group that go into a transaction
- `requests`: builds the requests to the transaction coordinator
- `states`: the states and their transitions
"""
