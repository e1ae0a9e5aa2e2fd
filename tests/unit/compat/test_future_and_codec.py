"""kafka-python's `Future` and codec functions."""

import kafka.codec
import pytest

from pyclient import codec
from pyclient.errors import NotLeaderOrFollowerError
from pyclient.future import Future
from pyclient.producer.delivery import FutureRecordMetadata


def test_callbacks_run_when_the_result_is_set_and_at_once_after_that() -> None:
    seen: list[object] = []
    future = Future().add_callback(seen.append).add_errback(seen.append)
    assert not future.is_done
    assert future.success(7).succeeded()
    future.add_both(lambda tag, value: seen.append((tag, value)), "late")
    assert seen == [7, ("late", 7)]


def test_a_failure_is_handed_on_to_a_chained_future() -> None:
    last = Future()
    Future().chain(last).failure(NotLeaderOrFollowerError)
    assert last.failed()
    assert last.retriable()
    assert isinstance(last.exception, NotLeaderOrFollowerError)
    with pytest.raises(TypeError, match="an exception"):
        Future().failure("text")


def test_what_send_returns_is_a_future() -> None:
    assert issubclass(FutureRecordMetadata, Future)


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4", "zstd"])
def test_either_client_expands_what_the_other_compressed(name: str) -> None:
    assert getattr(codec, f"has_{name}")()
    data = b"espresso " * 100
    if not getattr(kafka.codec, f"has_{name}")():
        assert getattr(codec, f"{name}_decode")(getattr(codec, f"{name}_encode")(data)) == data
        return
    for encoder, decoder in ((codec, kafka.codec), (kafka.codec, codec)):
        compressed = getattr(encoder, f"{name}_encode")(data)
        assert getattr(decoder, f"{name}_decode")(compressed) == data
