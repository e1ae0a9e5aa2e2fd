"""Clients that share no code with us write to, and read from, topics with a codec of their own."""

import pytest

from broker_stub import Broker
from tests.interop.foreign_clients import FOREIGN_CLIENTS, ForeignClient
from tests.interop.foreign_records import Record

CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 2


@pytest.mark.parametrize("client", FOREIGN_CLIENTS, ids=lambda one: one.name)
@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_the_broker_recompressed(
    kafka_broker: Broker, client: ForeignClient, codec: str
):
    kafka_broker.create_topic("orders", PARTITIONS, {"compression.type": codec})
    sent = [
        Record(n % PARTITIONS, b"key", b"value %d " % n * 20, (("h", b"1"),), 1_700_000_000_000 + n)
        for n in range(100)
    ]
    theirs = "lz4" if codec == "gzip" else "gzip"
    client.produce(kafka_broker.bootstrap_servers, "orders", sent, codec=theirs, idempotent=True)
    found = client.consume(kafka_broker.bootstrap_servers, "orders", PARTITIONS, len(sent))
    assert found == {
        index: [one for one in sent if one.partition == index] for index in range(PARTITIONS)
    }
