"""Steps of a `SenderWorld` that several tests take."""

from pyclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from pyclient.records.batch import RecordBatch


def respond(world, node, **fields):
    """Answer all batches of a node's oldest request with these fields."""
    unsent = world.connections[node].requests.popleft()
    (topic,) = unsent.request.topic_data
    endpoints = fields.pop("node_endpoints", [])
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=one.index, **fields)
                    for one in topic.partition_data
                ],
            )
        ],
        node_endpoints=endpoints,
    )
    unsent.on_done(response, world.clock.monotonic_ms())


def exchange(world, node=1, error_code=0):
    world.serve(node, error_code)
    world.answer(node)


def sent_batches(world, node=1):
    """The batches on their way to a node: (partition, epoch, base sequence, record count)."""
    found = []
    for unsent in world.connections[node].requests:
        for topic in unsent.request.topic_data:
            for one in topic.partition_data:
                batch = RecordBatch(b"".join(one.records))
                found.append(
                    (one.index, batch.producer_epoch, batch.base_sequence, batch.record_count)
                )
    return found


def make_known(world, partition=0):
    """Have a first record written, so that the broker knows the producer."""
    world.send(b"first", partition)
    world.settle()


def send_batches(world, count, partition=0):
    """Fill `count` batches of one record each, and drain them."""
    futures = []
    for _ in range(count):
        futures.append(world.send(b"%d" % len(world.futures), partition))
        world.accumulator.seal_all()
    world.poll()
    return futures
