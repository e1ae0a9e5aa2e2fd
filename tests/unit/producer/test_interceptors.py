"""Interceptors on a scripted network: what they see and change, and that they do no harm."""

import pytest

from pyclient import KafkaProducer, ProducerInterceptor
from pyclient.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    NoBrokersAvailable,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)
from pyclient.net.scripted import ScriptedNetwork
from tests.support.refused_topics import refuse_topics


class Spy(ProducerInterceptor):
    """Remembers its calls; adds its name to values."""

    made: list["Spy"] = []

    def __init__(self, name: bytes = b"") -> None:
        self.name = name
        self.calls: list[str] = []
        self.sent: list[object] = []
        self.outcomes: list[tuple[object, object]] = []
        Spy.made.append(self)

    def configure(self, configs):
        self.calls.append("configure")
        self.configs = configs

    def on_send(self, record):
        self.sent.append(record)
        return record._replace(value=record.value + self.name)

    def on_acknowledgement(self, metadata, exception):
        self.outcomes.append((metadata, exception))

    def close(self):
        self.calls.append("close")


class Clumsy(ProducerInterceptor):
    def on_send(self, record):
        raise RuntimeError("on_send broke")

    def on_acknowledgement(self, metadata, exception):
        raise RuntimeError("on_acknowledgement broke")

    def close(self):
        raise RuntimeError("close broke")


def test_each_interceptor_sees_what_the_one_before_made_of_the_record(log, new_producer):
    first, second = Spy(b"-1"), Spy(b"-2")
    producer = new_producer(interceptors=[first, second])
    producer.send("orders", b"v", key=b"k", headers=[("h", b"1")], partition=0, timestamp_ms=5)
    producer.flush()
    assert first.sent == [("orders", b"v", b"k", [("h", b"1")], 0, 5)]
    assert second.sent == [("orders", b"v-1", b"k", [("h", b"1")], 0, 5)]
    assert log.values("orders", 0) == [b"v-1-2"]


def test_the_record_is_seen_before_it_is_serialized(log, new_producer):
    spy = Spy()
    producer = new_producer(interceptors=[spy], value_serializer=lambda text: text.encode())
    spy.name = "-text"
    producer.send("orders", "v", partition=0).get(5)
    assert log.values("orders", 0) == [b"v-text"]


def test_an_acknowledgement_comes_in_order_and_before_the_programs_own_callback(log, new_producer):
    order = []
    first, second = Spy(), Spy()
    first.on_acknowledgement = lambda metadata, error: order.append(("first", metadata.offset))
    second.on_acknowledgement = lambda metadata, error: order.append(("second", metadata.offset))
    producer = new_producer(interceptors=[first, second])
    for _ in range(2):
        future = producer.send("orders", b"v", partition=0)
        future.add_callback(lambda metadata: order.append(("callback", metadata.offset)))
    producer.flush()
    assert order == [
        (name, offset) for offset in (0, 1) for name in ("first", "second", "callback")
    ]


def test_a_record_that_the_broker_refuses_is_acknowledged_with_the_error(log, new_producer):
    spy = Spy()
    producer = new_producer(interceptors=[spy])
    log.script.append(TopicAuthorizationFailedError.code)
    future = producer.send("orders", b"v", partition=1)
    producer.flush()
    ((metadata, error),) = spy.outcomes
    assert error == future.exception
    assert isinstance(error, TopicAuthorizationFailedError)
    assert (metadata.topic, metadata.partition, metadata.offset) == ("orders", 1, -1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"topic": "orders", "value": b"x" * 2_000_000}, RecordTooLargeError),
        ({"topic": "orders", "value": b"v", "partition": 7}, ValueError),
        ({"topic": "a b", "value": b"v"}, ValueError),
    ],
)
def test_a_record_that_never_got_as_far_is_acknowledged_too(log, new_producer, arguments, expected):
    spy = Spy()
    producer = new_producer(interceptors=[spy])
    with pytest.raises(expected) as caught:
        producer.send(**arguments)
    ((metadata, error),) = spy.outcomes
    assert error is caught.value
    assert metadata.topic == arguments["topic"]
    assert metadata.partition == arguments.get("partition", -1)


def test_a_closed_interceptor_is_not_called_any_more(log, new_producer):
    spy = Spy()
    producer = new_producer(interceptors=[spy])
    producer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send("orders", b"v")
    assert (spy.sent, spy.outcomes) == ([], [])


def test_a_future_that_fails_at_once_is_acknowledged_at_once(network, log, new_producer):
    spy = Spy()
    producer = new_producer(interceptors=[spy])
    refuse_topics(network)
    future = producer.send("tea", b"v")
    assert [error for _, error in spy.outcomes] == [future.exception]


def test_what_an_interceptor_raises_is_logged_and_the_next_gets_the_last_good_record(
    log, new_producer, caplog
):
    first, last = Spy(b"-1"), Spy(b"-2")
    producer = new_producer(interceptors=[first, Clumsy(), last])
    assert producer.send("orders", b"v", partition=0).get(5).offset == 0
    producer.close()
    assert log.values("orders", 0) == [b"v-1-2"]
    assert len(last.outcomes) == 1
    assert last.calls == ["configure", "close"]
    for call in ("on_send()", "on_acknowledgement()", "close()"):
        assert f"failed in {call}" in caplog.text


def test_returning_nothing_is_logged_and_changes_nothing(log, new_producer, caplog):
    class Forgetful:
        def on_send(self, record):
            pass

    producer = new_producer(interceptors=[Forgetful()])
    producer.send("orders", b"v", partition=0).get(5)
    assert log.values("orders", 0) == [b"v"]
    assert "must return a ProducerRecord" in caplog.text


def test_a_method_that_is_missing_is_not_called(log, new_producer, caplog):
    class OnlyCounts:
        count = 0

        def on_acknowledgement(self, metadata, exception):
            self.count += 1

    counter = OnlyCounts()
    producer = new_producer(interceptors=[counter])
    producer.send("orders", b"v").get(5)
    producer.close()
    assert counter.count == 1
    assert caplog.text == ""


@pytest.mark.parametrize("given", [Spy, f"{__name__}.Spy"])
def test_classes_and_names_of_classes_are_made_and_configured(log, new_producer, given):
    producer = new_producer(**{"interceptor.classes": [given], "client_id": "till-3"})
    spy = Spy.made[-1]
    assert spy.calls == ["configure"]
    assert spy.configs["client.id"] == "till-3"
    assert spy.configs["linger.ms"] == 5
    producer.close()
    producer.close()
    assert spy.calls == ["configure", "close"]


@pytest.mark.parametrize("given", ["NoModule", "no.such.module.Class", f"{__name__}.NoClass"])
def test_a_class_that_cannot_be_found_is_a_configuration_error(log, new_producer, given):
    spy = Spy()
    with pytest.raises(
        KafkaConfigurationError, match=f"interceptor.classes: '{given}' cannot be used"
    ):
        new_producer(interceptors=[spy, given])
    assert spy.calls == ["configure", "close"]


def test_a_producer_that_cannot_start_closes_its_interceptors():
    network = ScriptedNetwork()
    network.add_broker(1).refuse_connections()
    spy = Spy()
    with pytest.raises(NoBrokersAvailable):
        KafkaProducer(
            bootstrap_servers="broker1",
            environment=network,
            bootstrap_timeout_ms=100,
            interceptors=[spy],
        )
    assert spy.calls == ["configure", "close"]


def test_a_configuration_that_cannot_be_used_closes_them_too():
    spy = Spy()
    with pytest.raises(KafkaConfigurationError):
        KafkaProducer(
            interceptors=[spy],
            security_protocol="SSL",
            ssl_cafile="/no/such/file",
            api_version=(4,),
        )
    assert spy.calls == ["configure", "close"]
