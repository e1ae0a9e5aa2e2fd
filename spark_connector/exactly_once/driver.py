"""The driver's half: decides a batch, commits its transactions, finishes what a crash has left.

The order is what makes it safe. Taking over fences every earlier driver; the last decision is read
after that; the decision is written before the first transaction is committed.
"""

import logging
from typing import Final

from pyclient import KafkaAdminClient, PreparedTransaction
from spark_connector.exactly_once.decisions import (
    Decision,
    DecisionLog,
    State,
    is_decided,
    now_ms,
    taken_over,
)
from spark_connector.exactly_once.endings import (
    Fate,
    Fates,
    abort_all,
    end_all,
    open_tasks,
    proven,
    still_open,
)
from spark_connector.exactly_once.failures import (
    AnotherDriverError,
    DecisionsLostError,
    PartialBatchError,
    TransactionsLostError,
    VoidBatchError,
)
from spark_connector.exactly_once.names import TaskTransaction
from spark_connector.exactly_once.sink import ExactlyOnceSink

log = logging.getLogger(__name__)

# Brokers forget committed offsets, and so proofs, after a week by default.
_PROOFS_LAST_MS: Final = 24 * 60 * 60 * 1000


def commit_batch(
    sink: ExactlyOnceSink, key: str, number: int, transactions: list[TaskTransaction]
) -> None:
    """Make the rows of a batch visible, exactly once.

    Raises:
        ExactlyOnceError: the batch is not committed; says what is visible.
    """
    with sink.admin() as admin, taken_over(sink, key, admin) as log_of_key:
        driver = _Driver(sink, key, admin, log_of_key)
        last = log_of_key.last()
        if last is not None and last.number > number:
            driver.abort(transactions)
            raise AnotherDriverError(
                f"batch {number} of '{key}' is not written: batch {last.number} was decided by"
                " another driver. Two queries use one checkpoint, or two jobs one"
                " transactionalIdPrefix; stop one"
            )
        if last is not None and last.state is State.DECIDED and not driver.finish(last):
            driver.abort(transactions)
            raise void_error(key, last.number)
        if last is not None and last.number == number and last.state is not State.VOID:
            driver.abort(transactions)
            return
        driver.decide(number, transactions)


def abort_batch(
    sink: ExactlyOnceSink, key: str, number: int, transactions: list[TaskTransaction]
) -> None:
    """Abort the transactions of a batch that has failed, unless it is decided."""
    with sink.admin() as admin:
        if not is_decided(admin, sink, key, number):
            end_all(admin, transactions, commit=False)


def finish_last(sink: ExactlyOnceSink, key: str) -> Decision | None:
    """Finish the last batch of a key, if a driver died inside its commit.

    Returns:
        The last decision, which is done or void now; None if there is none.

    Raises:
        PartialBatchError: only some of its transactions could be committed.
    """
    with sink.admin() as admin, taken_over(sink, key, admin) as log_of_key:
        last = log_of_key.last()
        if last is None or last.state is not State.DECIDED:
            return last
        written = _Driver(sink, key, admin, log_of_key).finish(last)
        return Decision(last.number, State.DONE if written else State.VOID)


def settle_last(sink: ExactlyOnceSink, key: str, number: int, state: State) -> None:
    """Record by hand how a batch has ended.

    Raises:
        ValueError: it is not the last one, or nothing is open about it.
    """
    with sink.admin() as admin, taken_over(sink, key, admin) as log_of_key:
        last = log_of_key.last()
        if last is None or last.number != number or last.state is not State.DECIDED:
            raise ValueError(f"batch {number} of '{key}' is not waiting to be settled: {last}")
        log_of_key.write(Decision(number, state))


def void_error(key: str, number: int) -> VoidBatchError:
    return VoidBatchError(
        f"batch {number} of '{key}' was decided, but all its transactions were aborted, after"
        " transaction.timeout.ms or by another user of their ids: none of its rows is visible."
        " Start the query again: it writes the batch again. A batch write has to be run again"
    )


class _Driver:
    """A driver that has taken over."""

    def __init__(
        self, sink: ExactlyOnceSink, key: str, admin: KafkaAdminClient, decisions: DecisionLog
    ) -> None:
        self._sink = sink
        self._key = key
        self._admin = admin
        self._decisions = decisions

    def abort(self, transactions: list[TaskTransaction]) -> None:
        end_all(self._admin, transactions, commit=False)

    def decide(self, number: int, transactions: list[TaskTransaction]) -> None:
        """Decide a batch, and commit it."""
        lost = set(transactions) - set(still_open(self._admin, transactions))
        if lost:
            self.abort(transactions)
            tasks = sorted(one.partition for one in lost)
            raise TransactionsLostError(
                f"batch {number} of '{self._key}' is not written: the transactions of tasks"
                f" {tasks} ended before the batch was decided. They were open for longer than"
                " transaction.timeout.ms, or another task has used their ids. Start it again"
            )
        own = {one.prepared[:3] for one in transactions}
        others = [one for one in open_tasks(self._admin, self._key) if one[:3] not in own]
        decision = Decision(number, State.DECIDED, tuple(transactions), now_ms())
        self._decisions.write(decision)
        if not self._conclude(decision, end_all(self._admin, transactions, commit=True)):
            raise void_error(self._key, number)
        # Listed before the decision: none of them can be of a later batch, so aborting them is
        # safe even if another driver has taken over since.
        self._abort_others(others)

    def finish(self, decision: Decision) -> bool:
        """Commit what was decided; False if all of it was aborted, so that it is void now.

        Raises:
            PartialBatchError: some was committed, some aborted.
        """
        is_open = still_open(self._admin, decision.transactions)
        over = [one for one in decision.transactions if one not in is_open]
        fates = self._resolve(decision, end_all(self._admin, over, commit=True))
        # As long as nothing was committed and something was aborted, the rest is aborted, too.
        commit = Fate.ABORTED not in fates.values() or Fate.COMMITTED in fates.values()
        return self._conclude(decision, {**fates, **end_all(self._admin, is_open, commit=commit)})

    def _conclude(self, decision: Decision, fates: Fates) -> bool:
        fates = self._resolve(decision, fates)
        committed = sorted(one.partition for one, fate in fates.items() if fate is Fate.COMMITTED)
        lost = sorted(one.partition for one, fate in fates.items() if fate is Fate.ABORTED)
        if committed and lost:
            raise PartialBatchError(
                f"batch {decision.number} of '{self._key}' is written in part: the rows of tasks"
                f" {committed} are visible, those of tasks {lost} were aborted, after"
                " transaction.timeout.ms or by another user of their ids. The query does not go on"
                " until spark_connector.exactly_once.recovery.settle says how; see"
                " docs/spark-exactly-once.md",
                committed,
                lost,
            )
        self._decisions.write(Decision(decision.number, State.VOID if lost else State.DONE))
        return not lost

    def _resolve(self, decision: Decision, fates: Fates) -> Fates:
        unknown = [one for one, fate in fates.items() if fate is Fate.UNKNOWN]
        if not unknown:
            return fates
        # Other attempts of the same tasks may hold their proofs back. The write proves that no
        # other driver has taken over before they were listed, so that none is of a later batch.
        own = {one.prepared[:3] for one in decision.transactions}
        others = [one for one in open_tasks(self._admin, self._key) if one[:3] not in own]
        self._decisions.write(decision)
        self._abort_others(others)
        found = proven(self._admin, self._sink, self._key, unknown)
        is_old = now_ms() - decision.written_ms > _PROOFS_LAST_MS
        if is_old and Fate.ABORTED in found.values():
            raise DecisionsLostError(
                f"batch {decision.number} of '{self._key}' was decided more than a day ago, and"
                " nothing tells whether it was committed. Compare its rows with the topic, then"
                " call spark_connector.exactly_once.recovery.settle"
            )
        return {**fates, **found}

    def _abort_others(self, others: list[PreparedTransaction]) -> None:
        version = self._decisions.transaction_version
        abort_all(
            self._admin,
            [one._replace(transaction_version=version) for one in others],
            lambda name: log.warning("transaction of %s was committed by somebody else", name),
        )
