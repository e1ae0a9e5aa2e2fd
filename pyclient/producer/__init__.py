"""The producer: from `send` on the caller's thread to the broker's answer on the I/O thread.

- `kafka`, `future`: kafka-python's module paths, which re-export
- `transactions`: the transactional producer
- `arrow_columns`: the columns of `send_arrow`, checked
- `batch_result`: the outcome of a batch, shared by its records' futures
- `batch_sizing`: how large a batch may grow
- `batch_splitting`: splits a batch that the broker finds too large
- `buffer_pool`: `buffer.memory`, handed out first come, first served
- `bulk_intake`: `send_many` and `send_arrow`
- `core`: wires the parts, and owns their lifecycle
- `delivery`: the future of a record
- `delivery_deadlines`: expires batches after `delivery.timeout.ms`
- `interceptors`: calls `ProducerInterceptor` plugins
- `metrics`: Kafka's producer metrics
- `outcomes`: completes, retries, splits or fails a batch
- `partition_queue`: the batches of one partition, and the partitions of one topic
- `partitioner`: custom partitioners, and the partition of a key
- `producer`: `KafkaProducer`
- `producer_batch`: one batch and its state
- `producer_id`: InitProducerId requests
- `ready_partitions`: which partitions are due, after `linger.ms` or a retry's back-off
- `record_accumulator`: appends to batches, and drains them
- `record_intake`: `send`: checks, serializers, partitioner
- `reentry`: detects a signal handler that calls the producer it interrupted
- `sender`: one Produce request per node
- `sent_records`: the futures of a bulk send
- `sequences`: sequence numbers of idempotent producers
- `sticky_partitioner`: the partition of records without a key (KIP-794)
"""

from pyclient.producer.producer import KafkaProducer

__all__ = ["KafkaProducer"]
