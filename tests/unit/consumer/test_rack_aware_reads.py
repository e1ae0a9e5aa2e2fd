"""Whole consumers with two scripted brokers: records come from the replica in the same rack."""

import pytest

from pyclient import TopicPartition
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.fetch import FetchRequest
from tests.support.scripted_group import ScriptedGroup

P0 = TopicPartition("orders", 0)


class Leader(ScriptedGroup):
    """Sends consumers of rack b to node 2, as long as that replica is alive; serves all others."""

    has_replica = True
    served = 0

    def fetch(self, request, version):
        answer = super().fetch(request, version)
        if answer is None:
            return None
        (data,) = answer.responses[0].partitions
        if request.rack_id == "b" and self.has_replica:
            data.preferred_read_replica = 2
            data.records = b""
        else:
            self.served += 1
        return answer


@pytest.fixture
def replica(network):
    return network.add_broker(2)


@pytest.fixture
def group(network, broker, replica):
    leader = Leader(network, broker, [b"a", b"b", b"c"])
    replica.on(FetchRequest, lambda *request: ScriptedGroup.fetch(leader, *request))
    return leader


def values(consumer, timeout_ms=10_000):
    return [record.value for record in consumer.poll(timeout_ms).get(P0, [])]


def test_a_consumer_reads_from_the_replica_in_its_rack(new_consumer, group, replica):
    consumer = new_consumer("orders", client_rack="b")
    assert values(consumer) == [b"a", b"b", b"c"]
    assert group.served == 0
    assert {one.rack_id for one in replica.received(FetchRequest)} == {"b"}
    group.values.append(b"d")
    consumer.seek(P0, 3)
    assert values(consumer) == [b"d"]
    assert group.served == 0


def test_a_consumer_of_another_rack_reads_from_the_leader(new_consumer, group, replica):
    consumer = new_consumer("orders", client_rack="a")
    assert values(consumer) == [b"a", b"b", b"c"]
    assert replica.received(FetchRequest) == []


def test_reads_go_on_at_the_leader_when_the_replica_is_gone(new_consumer, group, replica):
    consumer = new_consumer("orders", client_rack="b", max_poll_records=1)
    assert values(consumer) == [b"a"]
    group.values.append(b"d")
    group.has_replica = False
    replica.on(FetchRequest, DISCONNECT)
    replica.cut()
    replica.refuse_connections()
    read = []
    for _ in range(20):
        read += values(consumer)
        if len(read) == 3:
            break
    assert read == [b"b", b"c", b"d"]
    assert group.served
