"""Answers a Fetch request: at once, or parked until there is enough to read.

A parked fetch watches its partitions in the purgatory. An append reads one partition again, not
all of them; the timeout answers with what there is. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from broker_stub.purgatory import DelayedOperation
from broker_stub.replica.fetch_sessions import FetchContext, FetchedTopics, FetchTarget
from broker_stub.replica.read_partitions import FetchParams, PartitionReads, read_partitions
from broker_stub.request import Parked

if TYPE_CHECKING:
    from broker_stub.node import Node
    from broker_stub.replica.manager import ReplicaManager

Answer = TypeVar("Answer")


def fetch_records(
    node: Node, params: FetchParams, encode: Callable[[int, FetchedTopics], Answer]
) -> Answer | Parked[Answer]:
    """Read the partitions; park the request if there are fewer than `min_bytes` to read.

    Args:
        node: the broker.
        params: what the client asks for.
        encode: makes the answer of a session id and of what was read.

    Raises:
        BrokerResponseError: the session is not as the client thinks; nothing has been done.
    """
    context = node.fetch_sessions.new_context(params, node.clock.monotonic_ms())
    max_bytes = node.config["fetch.max.bytes"]
    if params.max_bytes > max_bytes:
        params = params._replace(max_bytes=max_bytes)
    reads = read_partitions(node.replicas, params, context.targets)
    if (
        reads.is_final
        or reads.nbytes >= params.min_bytes
        or params.max_wait_ms <= 0
        or not context.targets
    ):
        return encode(context.session_id, context.update_session(reads.data))
    delayed = DelayedFetch(node.replicas, params, context, encode, reads)
    node.purgatory.watch(delayed, delayed.targets, params.max_wait_ms)
    delayed.parked.on_abandoned = lambda: node.purgatory.forget(delayed)
    return delayed.parked


class DelayedFetch(DelayedOperation, Generic[Answer]):
    """A fetch that waits for records."""

    def __init__(
        self,
        replicas: ReplicaManager,
        params: FetchParams,
        context: FetchContext,
        encode: Callable[[int, FetchedTopics], Answer],
        reads: PartitionReads,
    ) -> None:
        self.parked: Parked[Answer] = Parked()
        self._replicas = replicas
        self._params = params
        self._context = context
        self._encode = encode
        # Nothing has failed yet, so there is a partition for every target.
        found = list(zip(reads.partitions, reads.data, strict=True))
        self.targets: dict[Hashable, FetchTarget] = {
            partition.key: target for partition, (target, _) in found
        }
        self._nbytes: dict[Hashable, int] = {
            partition.key: data.nbytes for partition, (_, data) in found
        }
        self._nbytes_in_all = sum(self._nbytes.values())

    def try_complete(self, key: Hashable) -> bool:
        """Read the partition `key` again; answer if there is enough now."""
        reads = read_partitions(self._replicas, self._params, [self.targets[key]])
        self._nbytes_in_all += reads.nbytes - self._nbytes[key]
        self._nbytes[key] = reads.nbytes
        if not reads.is_final and self._nbytes_in_all < self._params.min_bytes:
            return False
        self._answer()
        return True

    def expire(self) -> None:
        """Answer with what there is."""
        self._answer()

    def _answer(self) -> None:
        context = self._context
        reads = read_partitions(self._replicas, self._params, context.targets)
        self.parked.answer(self._encode(context.session_id, context.update_session(reads.data)))
