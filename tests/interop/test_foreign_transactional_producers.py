"""Transactional producers that share no code with us give up on our broker, and soon.

The broker has no transactions yet; a client that retried for ever would look like a hang.
"""

import asyncio
import time
from collections.abc import Callable

import pytest

WAITED_SECONDS_MAX = 20


def confluent(servers: str) -> str:
    from confluent_kafka import KafkaException, Producer

    producer = Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    with pytest.raises(KafkaException) as caught:
        producer.init_transactions(WAITED_SECONDS_MAX)
    return str(caught.value.args[0].name())


def kafka_python(servers: str) -> str:
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="t")
    with pytest.raises(KafkaError) as caught:
        producer.init_transactions()
    producer.close(timeout=5)
    return type(caught.value).__name__


def aiokafka(servers: str) -> str:
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    async def start() -> str:
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="t")
        with pytest.raises(KafkaError) as caught:
            async with asyncio.timeout(WAITED_SECONDS_MAX):
                await producer.start()
        await producer.stop()
        return type(caught.value).__name__

    return asyncio.run(start())


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (confluent, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (kafka_python, "TransactionalIdAuthorizationFailedError"),
        (aiokafka, "TransactionalIdAuthorizationFailed"),
    ],
)
def test_a_client_with_a_transactional_id_is_refused_for_good(
    kafka_broker, start: Callable[[str], str], error: str
):
    begun = time.monotonic()
    assert start(kafka_broker.bootstrap_servers) == error
    assert time.monotonic() - begun < WAITED_SECONDS_MAX
