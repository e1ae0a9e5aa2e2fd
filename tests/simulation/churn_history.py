"""A history of topics that come and go while records are written to them.

Programs create, delete and create topics again under the same names; others send records to
whatever is there. Every ack promises that the record is on disk (`flush.messages=1`): while its
topic exists, it is there, at its offset, after any crash.
"""

from contextlib import suppress

from broker_stub.dispatch import Intervention
from broker_stub.log.internal_batches import read_log
from broker_stub.node import Node
from broker_stub.request import RequestContext
from broker_stub.testing.simulation import Simulation
from pyclient import KafkaAdminClient, KafkaProducer
from pyclient.admin import NewTopic
from pyclient.errors import KafkaError, NoBrokersAvailable
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.protocol.messages.produce import ProduceRequest, ProduceResponse
from pyclient.protocol.schema import Message
from pyclient.records.batch import iter_batches
from tests.simulation.node_interceptor import NodeInterceptor

NAMES = ("orders", "payments")
CHANGES = 10
RECORDS = 60
SETTLED_MS = 120_000

Place = tuple[bytes, int, int]
"""A topic's id, a partition, an offset: where a record is, for good."""


class WrittenRecords(NodeInterceptor):
    """Notes where the broker acknowledged records, and checks those offsets after each start."""

    def __init__(self, world: Simulation) -> None:
        self.places: dict[Place, bytes] = {}
        self._values: dict[tuple[str, int], dict[tuple[bytes, int], list[bytes]]] = {}
        super().__init__(world)

    def on_start(self, node: Node) -> None:
        self.check(node)

    def on_request(self, request: Message, context: RequestContext) -> Intervention | None:
        """Note the values, before the log has them."""
        if isinstance(request, ProduceRequest):
            key = (context.connection.connection_id, context.correlation_id)
            self._values[key] = {
                (topic.topic_id, one.index): [
                    bytes(record.value or b"")
                    for batch in iter_batches(bytes(one.records))  # type: ignore[arg-type]
                    for record in batch.decode(topic.name or "", one.index)
                ]
                for topic in request.topic_data
                for one in topic.partition_data
            }
        return None

    def on_response(
        self, request: Message, response: Message | None, context: RequestContext
    ) -> Intervention | None:
        """Note where they were written."""
        if isinstance(response, ProduceResponse):
            key = (context.connection.connection_id, context.correlation_id)
            values = self._values.pop(key, {})
            for topic in response.responses:
                for one in topic.partition_responses:
                    for index, value in enumerate(values.get((topic.topic_id, one.index), [])):
                        if not one.error_code:
                            place = (topic.topic_id, one.index, one.base_offset + index)
                            self.places[place] = value
        return None

    def check(self, node: Node) -> None:
        """What was written to topics that are still alive is there."""
        there: dict[Place, bytes] = {}
        for topic in node.image.topics():
            for index in topic.partitions:
                for record in read_log(node.replicas.partition_of(topic, index).log):
                    there[topic.topic_id, index, record.offset] = bytes(record.value or b"")
        alive = {topic.topic_id for topic in node.image.topics()}
        for place, value in self.places.items():
            assert place[0] not in alive or there.get(place) == value, (
                f"{value!r} is not there any more, but {there.get(place)!r}: {place}"
            )


def churn_history(seed: int) -> Simulation:
    """Run the history of a seed, and check it; the world, to look at its trace."""
    with Simulation(seed) as world:
        written = WrittenRecords(world)
        for name in NAMES:
            world.program(make_and_delete, world, name, name=f"admin-{name}")
        senders = [world.program(send, world, name, name=f"sender-{name}") for name in NAMES]
        world.run()
        world.run_for(SETTLED_MS)
        written.check(world.broker.node)
        world.broker.lose_power()
        world.broker.start()
        acked = {value for sender in senders for value in sender.result}
        assert acked <= set(written.places.values()), "acknowledged, but never written"
    return world


def make_and_delete(world: Simulation, name: str) -> None:
    """A program that creates and deletes a topic again and again."""
    chance = world.chance(f"changes of {name}")
    with (
        suppress(NoBrokersAvailable),
        KafkaAdminClient(
            **world.client(), bootstrap_timeout_ms=60_000, request_timeout_ms=2_000
        ) as admin,
    ):
        for _ in range(CHANGES):
            topic = NewTopic(name, chance.choice((1, 2)), 1, topic_configs={"flush.messages": "1"})
            with suppress(KafkaError):
                admin.create_topics([topic], timeout_ms=5_000)
            world.sleep(chance.uniform(0, 1_000))
            if chance.happens(0.7):
                with suppress(KafkaError):
                    admin.delete_topics([name], timeout_ms=5_000)


def send(world: Simulation, name: str) -> list[bytes]:
    """A program that sends records; the values that were acknowledged."""
    chance = world.chance(f"records of {name}")
    futures: dict[bytes, FutureRecordMetadata] = {}
    with (
        suppress(NoBrokersAvailable),
        KafkaProducer(
            **world.client(),
            bootstrap_timeout_ms=60_000,
            request_timeout_ms=1_000,
            delivery_timeout_ms=5_000,
            max_block_ms=1_000,
            linger_ms=0,
            batch_size=300,
            allow_auto_create_topics=False,
        ) as producer,
    ):
        for number in range(RECORDS):
            value = b"%s/%d" % (name.encode(), number)
            with suppress(KafkaError):
                futures[value] = producer.send(name, value)
            world.sleep(chance.choice((0, 10, 100)))
    return [value for value, future in futures.items() if future.exception is None]
