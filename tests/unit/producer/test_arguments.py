"""Every argument of kafka-python's `KafkaProducer`, 2.x and 3.x: its effect, or its refusal.

One table: each effect is shown on a scripted network, with the argument and with another value or
none. An argument of kafka-python that is in no table fails the first test.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import kafka
import pytest

from pyclient import KafkaProducer
from pyclient.errors import (
    BufferExhaustedError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
)
from pyclient.net.scripted import DISCONNECT, ScriptedNetwork
from pyclient.net.transport import SocketOptions
from pyclient.producer.partitioner import RoundRobinPartitioner
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest
from tests.support.scripted_log import ScriptedLog

OF_KAFKA_PYTHON_2 = {  # and not of 3
    "api_version_auto_timeout_ms",
    "bootstrap_topics_filter",
    "buffer_memory",
    "sock_chunk_buffer_count",
    "sock_chunk_bytes",
}

REFUSED = {
    "bootstrap_topics_filter": ({"orders"}, "the first metadata request names no topic"),
    "client_dns_lookup": ("resolve_canonical_bootstrap_servers_only", "Kerberos"),
    "kafka_client": (object, "runs its own I/O loop"),
    "proxy_url": ("socks5://proxy", "connects to brokers directly"),
    "sasl_kerberos_domain_name": ("example.org", "SASL is not supported yet"),
    "sasl_kerberos_name": ("kafka", "SASL is not supported yet"),
    "sasl_kerberos_service_name": ("other", "SASL is not supported yet"),
    "sasl_mechanism": ("PLAIN", "SASL is not supported yet"),
    "sasl_oauth_token_provider": (object(), "SASL is not supported yet"),
    "sasl_plain_password": ("secret", "SASL is not supported yet"),
    "sasl_plain_username": ("me", "SASL is not supported yet"),
    "selector": (object, "runs its own I/O loop"),
    "sock_chunk_buffer_count": (7, "reads whatever has arrived"),
    "sock_chunk_bytes": (7, "reads whatever has arrived"),
    "socks5_proxy": ("socks5://proxy", "connects to brokers directly"),
}

OF_TLS = {  # see tests/unit/net/test_tls.py and tests/integration/net
    "security_protocol",
    "ssl_cafile",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_ciphers",
    "ssl_context",
    "ssl_crlfile",
    "ssl_keyfile",
    "ssl_password",
}

OF_TRANSACTIONS = {"transaction_timeout_ms", "transactional_id"}  # see transactions/

OF_METRICS = {  # see test_metrics.py
    "metric_reporters",
    "metrics_enabled",
    "metrics_num_samples",
    "metrics_sample_window_ms",
}


class World(NamedTuple):
    """One broker, its log, and a way to make producers."""

    network: ScriptedNetwork
    log: ScriptedLog
    new_producer: Callable[..., KafkaProducer]

    @property
    def broker(self) -> Any:
        return self.network.brokers[1]

    def elapsed_ms(self, run: Callable[[], object]) -> float:
        """How long it took on the network's clock."""
        before_ms = self.network.clock.monotonic_ms()
        run()
        return self.network.clock.monotonic_ms() - before_ms

    def send(self, value: bytes = b"v", **options: object) -> Any:
        """A new producer's first record, in partition 0, and its outcome."""
        producer = self.new_producer(**options)
        future = producer.send("orders", value, partition=0)
        producer.flush()
        return future


Effect = Callable[[World], None]
EFFECTS: dict[str, Effect] = {}


def effect_of(*arguments: str) -> Callable[[Effect], Effect]:
    def register(effect: Effect) -> Effect:
        for argument in arguments:
            EFFECTS[argument] = effect
        return effect

    return register


# --- who is who ----------------------------------------------------------------------------------


@effect_of("bootstrap_servers")
def asks_there_first(world):
    world.log.serve(world.network.add_broker(2))
    KafkaProducer(bootstrap_servers="broker2:9092", environment=world.network).close()
    assert world.network.brokers[2].received(MetadataRequest)
    assert not world.broker.received(MetadataRequest)


@effect_of("client_id")
def names_the_client_in_every_request(world):
    frames = []
    serve = world.broker.serve
    world.broker.serve = lambda transport, frame: (frames.append(frame), serve(transport, frame))
    world.send(client_id="till-3")
    length_and_name = (6).to_bytes(2, "big") + b"till-3"
    assert frames
    assert all(frame[8:16] == length_and_name for frame in frames)


@effect_of("api_version")
def does_not_wait_for_a_broker(world):
    world.broker.refuse_connections()
    with pytest.raises(NoBrokersAvailable):
        world.new_producer(bootstrap_timeout_ms=100)
    assert world.elapsed_ms(lambda: world.new_producer(api_version=(3, 9))) == 0


@effect_of("bootstrap_timeout_ms", "api_version_auto_timeout_ms")
def bounds_the_wait_for_a_first_broker(world):
    world.broker.refuse_connections()
    for argument in ("bootstrap_timeout_ms", "api_version_auto_timeout_ms"):

        def connect(argument=argument):
            with pytest.raises(NoBrokersAvailable):
                world.new_producer(**{argument: 700})

        assert 700 <= world.elapsed_ms(connect) < 800


# --- what is sent --------------------------------------------------------------------------------


@effect_of("key_serializer", "value_serializer")
def makes_bytes(world):
    producer = world.new_producer(key_serializer=str.encode, value_serializer=lambda v: b"<%d>" % v)
    producer.send("orders", 7, key="k", partition=0).get(5)
    (record,) = world.log.partitions["orders", 0].records
    assert (record.key, record.value) == (b"k", b"<7>")


@effect_of("acks")
def tells_the_broker_whom_to_wait_for(world):
    for acks, on_the_wire in ((0, 0), (1, 1), ("all", -1)):
        world.send(acks=acks)
        assert world.log.requests[-1][0].acks == on_the_wire


@effect_of("enable_idempotence")
def numbers_batches(world):
    world.send(enable_idempotence=True)
    world.send(enable_idempotence=False)
    numbered, plain = world.log.partitions["orders", 0].batches
    assert numbered.producer_id > 0
    assert plain.producer_id == -1


@effect_of("compression_type")
def compresses(world):
    world.send(b"v" * 1000, compression_type="zstd")
    assert world.log.partitions["orders", 0].batches[0].codec == 4


@effect_of("batch_size")
def ends_batches(world):
    for size, batches in ((0, 3), (16_384, 1)):
        before = len(world.log.partitions["orders", 0].batches)
        producer = world.new_producer(batch_size=size, linger_ms=50)
        for _ in range(3):
            producer.send("orders", b"v", partition=0)
        producer.flush()
        assert len(world.log.partitions["orders", 0].batches) - before == batches


@effect_of("linger_ms")
def waits_for_more(world):
    for linger_ms in (0, 50):
        producer = world.new_producer(linger_ms=linger_ms)
        producer.send("orders", b"warm").get(5)
        taken_ms = world.elapsed_ms(lambda p=producer: p.send("orders", b"v").get(5))
        assert linger_ms <= taken_ms < linger_ms + 5


@effect_of("partitioner")
def chooses_the_partition(world):
    producer = world.new_producer(partitioner=RoundRobinPartitioner())
    chosen = [producer.send("orders", b"v", key=b"same").get(5).partition for _ in range(4)]
    assert chosen == [0, 1, 0, 1]


@effect_of("max_request_size")
def bounds_a_record(world):
    with pytest.raises(RecordTooLargeError, match=r"5000 of max\.request\.size"):
        world.send(b"x" * 6_000, max_request_size=5_000)


@effect_of("allow_auto_create_topics")
def lets_the_broker_create_topics(world):
    for allowed in (False, True):
        world.send(allow_auto_create_topics=allowed)
        assert world.broker.received(MetadataRequest)[-1].allow_auto_topic_creation is allowed


# --- memory and time -----------------------------------------------------------------------------


@effect_of("buffer_memory", "max_block_ms")
def bounds_what_waits_and_how_long(world):
    producer = world.new_producer(buffer_memory=20_000, max_block_ms=300)
    producer.send("orders", b"v", partition=0).get(5)
    world.broker.on(ProduceRequest, None)
    producer.send("orders", b"x" * 10_000, partition=0)

    def wait():
        with pytest.raises(BufferExhaustedError, match="of the 20000 bytes"):
            producer.send("orders", b"x" * 10_000, partition=1)

    assert 300 <= world.elapsed_ms(wait) < 310


@effect_of("delivery_timeout_ms")
def bounds_retries(world):
    world.broker.on(ProduceRequest, DISCONNECT)
    future = world.send(delivery_timeout_ms=2_000, request_timeout_ms=1_000)
    assert isinstance(future.exception, KafkaTimeoutError)
    assert "within 2000 ms" in str(future.exception)


@effect_of("request_timeout_ms")
def gives_an_answer_up(world):
    world.log.script.append(None)
    producer = world.new_producer(request_timeout_ms=1_000, linger_ms=0)
    producer.send("orders", b"v", partition=0).get(5)
    serve = world.log.produce
    answers = iter((lambda *_: None, serve))
    world.broker.on(ProduceRequest, lambda *request: next(answers)(*request))
    taken_ms = world.elapsed_ms(lambda: producer.send("orders", b"w", partition=0).get(10))
    assert 1_000 <= taken_ms < 1_500


@effect_of("retries")
def bounds_attempts(world):
    for retries, succeeds in ((0, False), (1, True)):
        world.log.script.append(NotLeaderOrFollowerError.code)
        assert world.send(retries=retries).succeeded() is succeeds


@effect_of("retry_backoff_ms")
def pauses_between_attempts(world):
    producer = world.new_producer(retry_backoff_ms=700, retry_backoff_max_ms=700, linger_ms=0)
    producer.send("orders", b"v", partition=0).get(5)
    world.log.script.append(NotLeaderOrFollowerError.code)
    taken_ms = world.elapsed_ms(lambda: producer.send("orders", b"v", partition=0).get(5))
    assert 500 < taken_ms < 900  # 700, and a fifth of jitter


# --- connections ---------------------------------------------------------------------------------


@effect_of("max_in_flight_requests_per_connection")
def bounds_requests_under_way(world):
    for limit in (1, 5):
        producer = world.new_producer(max_in_flight_requests_per_connection=limit, linger_ms=0)
        producer.send("orders", b"v", partition=0).get(5)
        world.broker.on(ProduceRequest, None)
        before = len(world.broker.received(ProduceRequest))
        for _ in range(7):
            producer.send("orders", b"v", partition=0)
            world.network.run_for(1)
        assert len(world.broker.received(ProduceRequest)) - before == limit
        world.broker.on(ProduceRequest, world.log.produce)
        producer.close(timeout=0)


@effect_of("connections_max_idle_ms")
def closes_what_is_idle(world):
    world.send(connections_max_idle_ms=5_000)
    world.network.run_for(4_000)
    assert not all(one.is_closed for one in world.broker.connections)
    world.network.run_for(6_000)
    assert all(one.is_closed for one in world.broker.connections)


@effect_of("metadata_max_age_ms")
def asks_for_metadata_again(world):
    world.send(metadata_max_age_ms=2_000)
    before = len(world.broker.received(MetadataRequest))
    world.network.run_for(9_000)
    assert len(world.broker.received(MetadataRequest)) - before == 4


@effect_of("reconnect_backoff_ms", "reconnect_backoff_max_ms")
def pauses_between_connections(world):
    producer = world.new_producer(reconnect_backoff_ms=500, reconnect_backoff_max_ms=1_000)
    producer.send("orders", b"v").get(5)
    world.broker.refuse_connections()
    producer.send("orders", b"v")
    before = world.broker.attempts
    world.network.run_for(10_000)
    # After 500, then after 1,000 ms each, with a fifth of jitter; as node 1, and as the server to
    # ask first.
    assert 2 * 8 <= world.broker.attempts - before <= 2 * 14


@effect_of("receive_message_max_bytes")
def refuses_a_larger_answer(world):
    with pytest.raises(NoBrokersAvailable, match="60"):
        world.new_producer(receive_message_max_bytes=60, bootstrap_timeout_ms=100)


@effect_of("receive_buffer_bytes", "send_buffer_bytes", "socket_options")
def sets_sockets_up(world):
    seen = []
    new_poller = world.network.new_poller

    def spy(options: SocketOptions) -> Any:
        seen.append(options)
        return new_poller(options)

    world.network.new_poller = spy
    world.new_producer(
        receive_buffer_bytes=4_096, send_buffer_bytes=8_192, socket_options=[(6, 1, 1)]
    )
    (options,) = seen
    assert (options.receive_buffer_bytes, options.send_buffer_bytes) == (4_096, 8_192)
    assert tuple(options.extra) == ((6, 1, 1),)


# --- the table -----------------------------------------------------------------------------------


def test_every_argument_of_kafka_python_is_in_a_table():
    theirs = {*kafka.KafkaProducer.DEFAULT_CONFIG, *OF_KAFKA_PYTHON_2}
    assert theirs == EFFECTS.keys() | REFUSED.keys() | OF_TLS | OF_METRICS | OF_TRANSACTIONS


@pytest.mark.parametrize("argument", EFFECTS)
def test_an_argument_has_its_effect(network, log, new_producer, argument):
    EFFECTS[argument](World(network, log, new_producer))


@pytest.mark.parametrize("spell", [str, lambda name: name.replace("_", ".")])
@pytest.mark.parametrize("argument", REFUSED)
def test_an_argument_without_effect_is_refused_with_the_reason(argument, spell):
    value, reason = REFUSED[argument]
    with pytest.raises(
        KafkaConfigurationError, match=f"{spell(argument)!r} is not supported: .*{reason}"
    ):
        KafkaProducer(**{spell(argument): value})


@pytest.mark.parametrize("argument", [*EFFECTS, *OF_METRICS])
def test_a_misspelt_argument_gets_the_right_name(argument):
    misspelt = argument[:-1]
    with pytest.raises(KafkaConfigurationError, match=f"no option {misspelt!r}; did you mean"):
        KafkaProducer(**{misspelt: 1})


def test_a_codec_without_its_library_is_refused_at_the_start(monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    words = "compression_type='snappy' cannot be used: codec snappy: .*cramjam"
    with pytest.raises(KafkaConfigurationError, match=words):
        KafkaProducer(compression_type="snappy", api_version=(4,))
