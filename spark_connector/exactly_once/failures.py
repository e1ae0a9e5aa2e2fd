"""The errors of the exactly-once sink. Each says what is visible and what to do."""


class ExactlyOnceError(RuntimeError):
    """A batch was not committed."""


class TransactionsLostError(ExactlyOnceError):
    """Transactions ended before the batch was decided. Nothing of it is visible."""


class AnotherDriverError(ExactlyOnceError):
    """Another driver of the same query, or job, has taken over."""


class VoidBatchError(ExactlyOnceError):
    """All transactions of a decided batch were aborted. Nothing of it is visible."""


class PartialBatchError(ExactlyOnceError):
    """Some transactions of a decided batch were committed and others aborted.

    Attributes:
        committed: the tasks (Spark's partition numbers) whose rows are visible.
        lost: those whose rows are not.
    """

    def __init__(self, text: str, committed: list[int], lost: list[int]) -> None:
        super().__init__(text)
        self.committed = committed
        self.lost = lost


class DecisionsLostError(ExactlyOnceError):
    """The decision topic lost a record, or it is too late to tell how a batch ended."""
