"""Connections that are cut at every byte of every exchange: all calls end well, by a retry.

In the default run, a sample of the bytes; every byte in memory, and with `make soak-cuts` on
sockets too.
"""

from collections.abc import Callable, Iterator

import pytest

from broker_stub.testing.tls import TlsCertificates
from tests.support.wire_uses import CLIENTS
from tests.support.wire_worlds import KINDS, WireWorld, wire_world

Use = Callable[[WireWorld], None]
STRIDES = {"memory": 7, "socket": 31, "tls": 211}

every_kind = pytest.mark.parametrize("kind", KINDS)
every_client = pytest.mark.parametrize("use", CLIENTS, ids=lambda use: use.__name__)


def places(
    use: Use, kind: str, certificates: TlsCertificates, stride: int
) -> Iterator[tuple[int, dict[str, int]]]:
    """Every connection, direction and byte of an undisturbed run, or every nth byte."""
    with wire_world(kind, certificates) as world:
        use(world)
        traffic = [(one.received, one.sent) for one in world.broker.traffic]
    for number, (received, sent) in enumerate(traffic):
        for count in range(0, received + 1, stride):
            yield number, {"received_max": count}
        for count in range(0, sent + 1, stride):
            yield number, {"sent_max": count}


def cut_everywhere(use: Use, kind: str, certificates: TlsCertificates, stride: int) -> int:
    """Use a client once for each place, with the connection cut there; how many there were."""
    cuts = 0
    for number, limits in places(use, kind, certificates, stride):
        with wire_world(kind, certificates) as world:
            world.broker.cut_connection(number, **limits)
            try:
                use(world)
            except BaseException as error:
                error.add_note(f"connection {number} was cut at {limits}")
                raise
            if kind == "memory":  # else sizes differ a little from run to run
                assert world.broker.traffic[number].is_cut
            cuts += 1
    return cuts


@every_kind
@every_client
def test_a_connection_cut_anywhere_is_made_up_for(use, kind, kafka_tls_certificates):
    assert cut_everywhere(use, kind, kafka_tls_certificates, STRIDES[kind]) > 10


@pytest.mark.simulation
@every_client
def test_a_connection_cut_at_any_byte_is_made_up_for(use, kafka_tls_certificates):
    assert cut_everywhere(use, "memory", kafka_tls_certificates, stride=1) > 100


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["socket", "tls"])
@every_client
def test_cuts_at_any_byte_on_sockets(use, kind, kafka_tls_certificates):
    print(f"{use.__name__}, {kind}:", cut_everywhere(use, kind, kafka_tls_certificates, stride=1))
