"""Groups of `kcat -G` on `python -m broker_stub`: members join, leave and are killed."""

import pytest
from confluent_kafka import Producer

from tests.interop.group_processes import ForeignGroup, watching_owners
from tests.interop.kcat_member import KcatMember, needs_kcat
from tests.interop.test_foreign_groups_matrix import PARTITIONS, TOPIC, Records, server

__all__ = ["server"]


@needs_kcat
@pytest.mark.parametrize(
    "assignor",
    [
        pytest.param("range", marks=pytest.mark.soak),
        pytest.param("roundrobin", marks=pytest.mark.soak),
        "cooperative-sticky",
    ],
)
def test_groups_of_kcat_grow_and_shrink(server, assignor):
    with (
        watching_owners(server.port, "group") as sizes,
        Records(server.bootstrap_servers) as records,
        ForeignGroup(server.port, "group", TOPIC, PARTITIONS) as group,
    ):

        def start(number: int) -> KcatMember:
            member = KcatMember(
                f"kcat-{number}", server.bootstrap_servers, "group", TOPIC, assignor
            )
            group.add(member)
            settle()
            return member

        def settle() -> None:
            count = len(group.alive)
            group.wait_until_shared()
            group.wait_until(lambda: count in sizes, f"seen with {count} members")

        first, second, _ = start(1), start(2), start(3)
        first.kill()
        settle()
        start(4)
        group.wait_until_read(records.stop())
        # No records while one leaves: kcat 1.7.1 was seen to commit one more than it had printed.
        second.leave()
        settle()
        values = [f"later-{number}" for number in range(10 * PARTITIONS)]
        producer = Producer({"bootstrap.servers": server.bootstrap_servers})
        for number, value in enumerate(values):
            producer.produce(TOPIC, value.encode(), partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        group.wait_until_read(set(values))
