"""Hands out producer ids, from blocks that the controller allocates.

A block is in the metadata log before its first id is used, so no id is given twice. The rest of a
block is lost when the broker stops. Serving thread only.
"""

from collections import deque
from collections.abc import Callable, Iterator

from broker_stub.metadata.controller import Controller
from pyclient.error_codes import BrokerResponseError

Given = Callable[[int | BrokerResponseError], None]


class ProducerIds:
    """The ids of the current block."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._block: Iterator[int] = iter(())
        self._waiting: deque[Given] = deque()

    def next(self, given: Given) -> None:
        """Call `given` with the next id: at once, or when a new block is allocated."""
        self._waiting.append(given)
        if len(self._waiting) == 1:
            self._serve()

    def _serve(self) -> None:
        while self._waiting:
            producer_id = next(self._block, None)
            if producer_id is None:
                self._controller.allocate_producer_ids(self._allocated)
                return
            self._waiting.popleft()(producer_id)

    def _allocated(self, block: range | BrokerResponseError) -> None:
        if isinstance(block, BrokerResponseError):
            while self._waiting:
                self._waiting.popleft()(block)
            return
        self._block = iter(block)
        self._serve()
