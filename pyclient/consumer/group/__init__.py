"""Membership in a consumer group.

- `assignors`: how the group's leader spreads partitions over the members

- `classic`: the classic protocol: join, sync, heartbeat, leave
- `consumer_protocol`: subscriptions and assignments as bytes
- `coordinator`: finds the group's coordinator
- `heartbeat`: when heartbeats are due, and when a session ends
- `leader`: what the leader of a generation does
- `member`: this member's ids, and the requests it sends
- `member_state`: the states of a member, and the transitions between them
- `membership`: the interface of all protocols
- `next_join`: when a member joins next, why, and with what
- `poll_interval`: `max.poll.interval.ms`
- `program_work`: the parts of a rebalance that run the program's assignors
- `protocols`: makes the membership by the protocol that is used
- `solo`: subscribed topics without a group
- `topic_partitions`: partitions grouped by topic, as bytes
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyclient.consumer.consumer import KafkaConsumer as KafkaConsumer


def __getattr__(name: str) -> Any:
    # kafka-python's module path of `KafkaConsumer`. Imported late: it imports this package.
    if name == "KafkaConsumer":
        from pyclient.consumer.consumer import KafkaConsumer

        return KafkaConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
