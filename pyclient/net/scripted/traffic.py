"""The bytes of one connection to a scripted broker: counted, and cut off where a test says so."""

import math


class Traffic:
    """What a broker received and sent on one connection.

    Attributes:
        received, sent: bytes so far, seen from the broker.
        received_max, sent_max: the connection is cut after this many bytes.
    """

    def __init__(self, received_max: float = math.inf, sent_max: float = math.inf) -> None:
        self.received = 0
        self.sent = 0
        self.received_max = received_max
        self.sent_max = sent_max

    @property
    def is_cut(self) -> bool:
        """Whether one of the limits is reached: nothing goes through any more."""
        return self.received >= self.received_max or self.sent >= self.sent_max

    def take_in(self, data: bytes) -> bytes:
        """As much of what a client writes as still arrives."""
        taken = data[: int(min(self.received_max - self.received, len(data)))]
        self.received += len(taken)
        return taken

    def let_out(self, data: bytes) -> bytes:
        """As much of what the broker writes as still arrives."""
        taken = data[: int(min(self.sent_max - self.sent, len(data)))]
        self.sent += len(taken)
        return taken
