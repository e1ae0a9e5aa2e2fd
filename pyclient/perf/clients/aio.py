"""aiokafka as a client of a load. Its event loop runs while a method does."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pyclient.errors import KafkaConfigurationError
from pyclient.perf.clients.interface import OnDone, Outgoing, Polled, counted, plain_values
from pyclient.perf.pacing import Pacer


def producer(_client: str, options: Mapping[str, Any], on_done: OnDone) -> "_Producer":
    import aiokafka

    return _Producer(aiokafka.AIOKafkaProducer, options, on_done)


def consumer(_client: str, options: Mapping[str, Any]) -> "_Consumer":
    import aiokafka

    return _Consumer(aiokafka.AIOKafkaConsumer, options)


class _Client:
    """A client of aiokafka, started, and the loop that it lives on."""

    def __init__(self, make: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            self._client = self._run(_started(make, plain_values(options)))
        except BaseException:
            self._loop.close()
            raise

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def close(self) -> None:
        self._run(self._client.stop())
        self._loop.close()


async def _started(make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    try:
        client = make(**options)
    except (TypeError, ValueError) as error:
        raise KafkaConfigurationError(f"aiokafka refused its options: {error}") from error
    await client.start()
    return client


class _Producer(_Client):
    def __init__(
        self, make: Callable[..., Any], options: Mapping[str, Any], on_done: OnDone
    ) -> None:
        super().__init__(make, options)
        self._on_done = on_done

    def send_all(self, topic: str, records: Iterable[Outgoing], pacer: Pacer) -> None:
        self._run(self._send_all(topic, records, pacer))

    async def _send_all(self, topic: str, records: Iterable[Outgoing], pacer: Pacer) -> None:
        send = self._client.send
        for value, key, is_measured in records:
            due_ms = pacer.next_due_ms()
            while (left_ms := pacer.left_ms(due_ms)) > 0:
                await asyncio.sleep(left_ms / 1000)
            future = await send(topic, value, key)
            if is_measured:
                future.add_done_callback(partial(self._done, due_ms, len(value)))

    def _done(self, due_ms: float, size: int, future: Any) -> None:
        self._on_done(due_ms, size, future.exception())

    def flush(self, timeout: float | None = None) -> None:
        self._run(asyncio.wait_for(self._client.flush(), timeout))

    def failures(self) -> int | None:
        return None


class _Consumer(_Client):
    def subscribe(self, topic: str, on_assigned: Callable[[], None]) -> None:
        from aiokafka import ConsumerRebalanceListener

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:  # noqa: ARG002
                on_assigned()

            async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
                pass

        self._client.subscribe([topic], listener=Listener())

    def assign_at_end(self, topic: str, partitions: Sequence[int]) -> None:
        from aiokafka import TopicPartition

        assigned = [TopicPartition(topic, number) for number in partitions]
        self._client.assign(assigned)
        self._run(self._to_the_end(assigned))

    async def _to_the_end(self, assigned: Sequence[Any]) -> None:
        await self._client.seek_to_end(*assigned)
        for each in assigned:
            await self._client.position(each)

    def poll(self, timeout_ms: int) -> Polled:
        return counted(self._batches(timeout_ms))

    def poll_values(self, timeout_ms: int) -> list[bytes]:
        return [record.value for batch in self._batches(timeout_ms) for record in batch]

    def _batches(self, timeout_ms: int) -> Collection[list[Any]]:
        found: Mapping[Any, list[Any]] = self._run(self._client.getmany(timeout_ms=timeout_ms))
        return found.values()
