"""Messages for topics whose partitions are not known yet, so that `produce` never waits.

A thread, which lives only while there are such messages, waits for metadata and then hands the
messages over, topic by topic and in order.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

M = TypeVar("M")


class UnresolvedTopics(Generic[M]):
    """Messages by topic. Any thread.

    Attributes:
        resolved: the topics whose messages `produce` may hand over itself.
    """

    def __init__(
        self,
        resolve: Callable[[str], object],
        hand_over: Callable[[M], None],
        fail: Callable[[M, Exception], None],
        thread_name: str,
    ) -> None:
        """Wait for nothing yet.

        Args:
            resolve: returns when the topic's partitions are known, or raises.
            hand_over: takes a message whose topic is known, or raises; BufferError if none fits.
            fail: takes a message that could not be handed over, with the reason.
            thread_name: of the thread that all three are called on.
        """
        self._resolve = resolve
        self._hand_over = hand_over
        self._fail = fail
        self._thread_name = thread_name
        self._lock = threading.Lock()  # guards what follows
        self._waiting: dict[str, list[M]] = {}
        self.resolved: set[str] = set()
        self._is_running = False

    def add(self, topic: str, message: M) -> bool:
        """Have the message wait behind those of its topic; False if the topic is known by now."""
        with self._lock:
            if topic in self.resolved:
                return False
            self._waiting.setdefault(topic, []).append(message)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name=self._thread_name, daemon=True).start()
            return True

    def drop(self) -> list[M]:
        """Forget the messages that wait, and return them."""
        with self._lock:
            dropped = [message for messages in self._waiting.values() for message in messages]
            for messages in self._waiting.values():
                messages.clear()
        return dropped

    def _run(self) -> None:
        while (topic := self._next_topic()) is not None:
            try:
                self._resolve(topic)
            except Exception as error:  # noqa: BLE001  each report carries it
                with self._lock:
                    failed = self._waiting.pop(topic)
                for message in failed:
                    self._fail(message, error)
            else:
                # Under the lock, so that no message overtakes those that have waited.
                with self._lock:
                    self._hand_over_all(self._waiting.pop(topic))
                    self.resolved.add(topic)

    def _hand_over_all(self, messages: list[M]) -> None:
        full: BufferError | None = None
        for message in messages:
            try:
                if full is None:
                    self._hand_over(message)
                    continue
            except BufferError as error:
                full = error  # for all that follow: each would wait for memory again
            except Exception as error:  # noqa: BLE001  the report carries it
                self._fail(message, error)
                continue
            self._fail(message, full)

    def _next_topic(self) -> str | None:
        with self._lock:
            topic = next(iter(self._waiting), None)
            self._is_running = topic is not None
            return topic
