"""The consumer: fetching ahead, groups, offsets, and the polls of the program.

- `fetch`: Fetch requests, and the way of their records to `poll`
- `group`: membership in a consumer group
- `health`: what the consumer is doing, and stalls
- `offsets`: commits, committed offsets, resets and lookups by time

- `fetcher`: kafka-python's module path of `ConsumerRecord`, which re-exports
- `arguments`: checks arguments of `KafkaConsumer`'s methods
- `caller_lookups`: what the caller's thread looks up in the cluster
- `caller_requests`: what the caller's thread asks the I/O thread to do
- `caller_wait`: how calls wait for the I/O thread, and `wakeup`
- `cluster`: what the consumer's managers use of the metadata
- `consumer`: `KafkaConsumer`
- `core`: wires the parts, and owns their lifecycle
- `inbox`: actions and errors from the I/O thread for the caller's thread
- `interceptors`: calls `ConsumerInterceptor` plugins
- `iteration`: `for record in consumer`
- `metrics`: Kafka's consumer metrics
- `partition_state`: the state of one assigned partition
- `pending`: a result that the I/O thread delivers
- `poll_loop`: what happens inside `poll`
- `rebalance`: revokes and assigns partitions, and calls the listener
- `rebalance_listener`: the listener's interface
- `subscription_state`: what is subscribed, assigned, paused; all positions
- `topic_interest`: which topics' metadata is needed; patterns
- `use_guard`: detects use by two threads at once
"""

from pyclient.consumer.consumer import KafkaConsumer

__all__ = ["KafkaConsumer"]
