"""Groups of `kcat -G` on `python -m broker_stub`, through every mishap while records flow."""

import pytest

from tests.interop.group_processes import ForeignGroup, watching_owners
from tests.interop.kcat_member import KcatMember, needs_kcat
from tests.interop.test_foreign_groups_matrix import PARTITIONS, TOPIC, Records, server

__all__ = ["server"]
LEAVES_AFTER = 40


@needs_kcat
@pytest.mark.parametrize(
    "assignor",
    [
        pytest.param("range", marks=pytest.mark.soak),
        pytest.param("roundrobin", marks=pytest.mark.soak),
        "cooperative-sticky",
    ],
)
def test_groups_of_kcat_grow_and_shrink_through_every_mishap(server, assignor):
    with (
        watching_owners(server.port, "group") as sizes,
        Records(server.bootstrap_servers) as records,
        ForeignGroup(server.port, "group", TOPIC, PARTITIONS) as group,
    ):

        def start(count: int | None = None) -> KcatMember:
            name = f"kcat-{len(group.members) + 1}"
            member = KcatMember(name, server.bootstrap_servers, "group", TOPIC, assignor, count)
            group.add(member)
            return member

        def settle(*members: KcatMember) -> None:
            count = len(members or group.alive)
            group.wait_until_shared(*members)
            group.wait_until(lambda: count in sizes, f"seen with {count} members")

        first = start()
        settle()
        second, third = start(), start()
        settle()
        first.kill()
        settle()
        third.stall()
        settle(second)
        third.resume()
        settle()
        leaver = start(LEAVES_AFTER)
        leaver.wait_until_left()
        assert len(leaver.values) == LEAVES_AFTER
        settle()
        group.wait_until_read(records.stop())
    assert 3 in sizes
