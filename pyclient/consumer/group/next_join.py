"""When a classic member joins next, why, and with what. The I/O thread only.

`classic.py` asks this in state UNJOINED. Nothing here changes the member's state.
"""

from pyclient.consumer.group.program_work import PreparedJoin
from pyclient.consumer.inbox import Inbox
from pyclient.errors import KafkaError
from pyclient.timers import ExponentialBackoff


class NextJoin:
    """The next join of one member.

    Attributes:
        reason: why it joins, for the logs.
        at_ms: not before this time.
        is_blocked: not before the program has seen an error.
        prepared: what the assignors tell the leader; None if they have to be asked.
        topics: what the last join named.
    """

    def __init__(self, backoff: ExponentialBackoff, inbox: Inbox) -> None:
        self._backoff = backoff
        self._inbox = inbox
        self._failures = 0
        self.reason = "the consumer starts"
        self.at_ms = 0.0
        self.is_blocked = False
        self.prepared: PreparedJoin | None = None
        self.topics: frozenset[str] = frozenset()

    def is_due(self, now_ms: float) -> bool:
        """Whether nothing here speaks against joining now."""
        return not self.is_blocked and now_ms >= self.at_ms

    def prepared_for(self, topics: frozenset[str]) -> PreparedJoin | None:
        """What was prepared, if it is for these topics."""
        prepared = self.prepared
        return prepared if prepared is not None and prepared.topics == topics else None

    def at_once(self, reason: str) -> None:
        """Join without a delay."""
        self.reason = reason
        self.at_ms = 0.0

    def back_off(self, reason: str, now_ms: float) -> None:
        """Join after a delay that grows with each failure."""
        self.reason = reason
        self.at_ms = now_ms + self._backoff.backoff_ms(self._failures)
        self._failures += 1

    def succeeded(self) -> None:
        """An assignment came. What the assignors tell the leader may change with it."""
        self._failures = 0
        self.prepared = None

    def block(self, error: KafkaError) -> None:
        """Raise the error in the program's next poll, and do not join until then."""
        if not self.is_blocked:
            self.is_blocked = True
            self._inbox.post_error(error, self._unblock)

    def _unblock(self) -> None:
        self.is_blocked = False
