"""Idempotent producers that share no code with us, while our broker fails and hangs up."""

from collections.abc import Callable

import pytest

from broker_stub import Broker
from broker_stub.testing import Nth
from broker_stub.testing.faults import Fault, Faults
from pyclient.errors import (
    KafkaStorageError,
    NotEnoughReplicasAfterAppendError,
    NotLeaderOrFollowerError,
)
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest
from tests.interop.foreign_clients import FOREIGN_CLIENTS, ForeignClient
from tests.interop.foreign_records import Record

PARTITIONS = 2

every_client = pytest.mark.parametrize("client", FOREIGN_CLIENTS, ids=lambda one: one.name)

TROUBLE: dict[str, Callable[[Faults], Fault]] = {
    "refused": lambda faults: faults.fail_next(ProduceRequest, NotLeaderOrFollowerError, 2),
    "told to come again": lambda faults: faults.fail_next(ProduceRequest, KafkaStorageError, 2),
    "refused in part": lambda faults: faults.fail_next(
        ProduceRequest, NotLeaderOrFollowerError, 2, topic="orders", partition=1
    ),
    "written, and refused": lambda faults: faults.fail_next(
        ProduceRequest, NotEnoughReplicasAfterAppendError, after=True
    ),
    "written, and hung up": lambda faults: faults.drop(ProduceRequest, after=True),
    "not written, and hung up": lambda faults: faults.drop(ProduceRequest),
    "written, and cut off": lambda faults: faults.cut(ProduceRequest, 11),
}


def records(count: int) -> list[Record]:
    return [
        Record(index % PARTITIONS, b"key", b"value-%d" % index, (), 1_700_000_000_000 + index)
        for index in range(count)
    ]


@every_client
@pytest.mark.parametrize("trouble", TROUBLE)
def test_every_record_is_written_once_and_in_order(kafka_broker: Broker, client, trouble):
    kafka_broker.create_topic("orders", partitions=PARTITIONS)
    fault = TROUBLE[trouble](kafka_broker.faults)
    sent = records(40)
    client.produce(kafka_broker.bootstrap_servers, "orders", sent, idempotent=True)
    assert fault.hits > 0
    found = client.consume(kafka_broker.bootstrap_servers, "orders", PARTITIONS, len(sent))
    assert found == {
        index: [one for one in sent if one.partition == index] for index in range(PARTITIONS)
    }
    ends = kafka_broker.call(
        lambda node: [node.replicas.partition("orders", i).log_end_offset for i in range(2)]
    )
    assert ends == [20, 20]


@every_client
def test_a_reader_goes_on_after_errors_and_cut_answers(kafka_broker: Broker, client: ForeignClient):
    kafka_broker.create_topic("orders", partitions=PARTITIONS)
    sent = records(40)
    client.produce(kafka_broker.bootstrap_servers, "orders", sent)
    faults = kafka_broker.faults
    orders = [
        faults.fail_next(FetchRequest, NotLeaderOrFollowerError, topic="orders", partition=0),
        faults.cut(FetchRequest, 100, Nth(2)),
    ]
    found = client.consume(kafka_broker.bootstrap_servers, "orders", PARTITIONS, len(sent))
    assert sorted(one.value for values in found.values() for one in values) == sorted(
        one.value for one in sent
    )
    assert all(order.hits for order in orders)


@every_client
def test_a_client_speaks_to_an_older_broker(kafka_broker: Broker, client: ForeignClient):
    for api, highest in ((ProduceRequest, 7), (FetchRequest, 11), (MetadataRequest, 5)):
        kafka_broker.faults.hide(api, above=highest)
    sent = records(4)
    kafka_broker.create_topic("orders", partitions=PARTITIONS)
    client.produce(kafka_broker.bootstrap_servers, "orders", sent)
    client.consume(kafka_broker.bootstrap_servers, "orders", PARTITIONS, len(sent))
    used = {one.api_version for one in kafka_broker.requests.received(ProduceRequest)}
    assert used == {7}
