"""The caller's part of a rebalance: giving partitions up, taking them, telling the listener.

The caller's thread only, inside `poll`, `unsubscribe` or `close`.

A step is done in phases. One that has to wait, for the commit before a revocation, ends the run;
the next poll continues there. So does a poll after an interrupt (Ctrl-C may come anywhere): what
the program sees, its listener and its assignor, is called once, all else may be repeated.
"""

import logging
from collections.abc import Callable, Collection
from typing import Protocol

from pyclient.consumer.group.membership import RebalanceStep, StepKind
from pyclient.consumer.pending import Pending
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.types import TopicPartition

log = logging.getLogger(__name__)


class RevocationCommits(Protocol):
    """The automatic commits before partitions are given up."""

    def before_revocation(self, partitions: Collection[TopicPartition]) -> Pending[None] | None:
        """Begin to commit; None if there is nothing to wait for."""

    def revocation_done(self, commit: Pending[None]) -> None:
        """The commit is over: report how it went."""


class _Progress:
    """How far a step has got."""

    __slots__ = ("added", "commit", "failure", "gone", "has_begun_commit", "phase", "told")

    def __init__(self) -> None:
        self.phase = 0
        self.gone: set[TopicPartition] = set()
        self.added: set[TopicPartition] = set()
        self.has_begun_commit = False
        self.commit: Pending[None] | None = None
        self.told = 0  # calls of the program's code that were begun
        self.failure: BaseException | None = None  # the first that the program raised


class Rebalancer:
    """Runs the steps that the membership posts."""

    def __init__(
        self,
        subscription: SubscriptionState,
        commits: Callable[[], RevocationCommits],
        on_step_done: Callable[[RebalanceStep], None],
    ) -> None:
        """`on_step_done` reports a step to the membership."""
        self._subscription = subscription
        self._commits = commits
        self._on_step_done = on_step_done
        self._phases: tuple[Callable[[RebalanceStep, _Progress], bool], ...] = (
            self._hold,
            self._commit,
            self._tell_gone,
            self._drop,
            self._work,
            self._compare,
            self._take,
            self._tell_added,
            self._release,
            self._report,
        )
        # Of these the listener is being told that they go: it may call `unsubscribe` or `close`.
        self._going: set[TopicPartition] = set()
        # What the listener was told has to be done, and the reverse, also if the step is
        # cancelled meanwhile: else it would hear twice, or of partitions that it never got.
        self._consequences = (self._drop, self._tell_added, self._release, self._report)

    def run(self, step: RebalanceStep) -> bool:
        """Continue a step; True once it is over. Raises what the program's listener raised."""
        if step.progress is None:
            if not step.begin():
                return True
            step.progress = _Progress()
        progress: _Progress = step.progress
        while progress.phase < len(self._phases):
            if step.is_cancelled and self._phases[progress.phase] not in self._consequences:
                if progress.commit is not None:
                    progress.commit.abandon()
                break
            if not self._phases[progress.phase](step, progress):
                return False
            progress.phase += 1
        failure, progress.failure = progress.failure, None
        if failure is not None:
            raise failure
        return True

    def give_up_all(self, are_lost: bool) -> None:
        """Tell the listener that all partitions go, or are gone, and drop them. No commit."""
        subscription = self._subscription
        gone = subscription.assigned() - self._going
        subscription.hold()
        try:
            if gone:
                self._tell_of(gone, are_lost)
        finally:
            subscription.assign_from_group(())

    def _tell_of(self, gone: set[TopicPartition], are_lost: bool) -> None:
        listener = self._subscription.listener
        if listener is None:
            return
        earlier, self._going = self._going, self._going | gone
        try:
            (listener.on_partitions_lost if are_lost else listener.on_partitions_revoked)(gone)
        finally:
            self._going = earlier

    # --- the phases --------------------------------------------------------------------------

    def _hold(self, step: RebalanceStep, progress: _Progress) -> bool:
        """Stop reading what goes."""
        assigned = self._subscription.assigned()
        if step.kind is StepKind.REVOKE:
            progress.gone = assigned.intersection(step.partitions)
        elif step.kind is StepKind.ASSIGN:
            progress.gone = assigned.difference(step.partitions)
        elif step.kind is StepKind.LOSE:
            progress.gone = assigned
        if progress.gone:
            self._subscription.hold(progress.gone)
        return True

    def _commit(self, step: RebalanceStep, progress: _Progress) -> bool:
        """Commit what goes, unless others may own it already: that would be refused."""
        if not progress.gone or step.kind is StepKind.LOSE:
            return True
        if not progress.has_begun_commit:
            progress.commit = self._commits().before_revocation(progress.gone)
            progress.has_begun_commit = True
        if progress.commit is None:
            return True
        if not progress.commit.is_done:
            return False
        commit, progress.commit = progress.commit, None
        self._commits().revocation_done(commit)
        return True

    def _tell_gone(self, step: RebalanceStep, progress: _Progress) -> bool:
        if progress.gone and progress.told < 1:
            progress.told = 1
            are_lost = step.kind is StepKind.LOSE
            _call(progress, lambda: self._tell_of(progress.gone, are_lost))
        return True

    def _drop(self, step: RebalanceStep, progress: _Progress) -> bool:
        if progress.gone:
            step.has_revoked = step.kind is not StepKind.LOSE
            self._subscription.assign_from_group(
                sorted(self._subscription.assigned() - progress.gone)
            )
        return True

    def _work(self, step: RebalanceStep, progress: _Progress) -> bool:
        if step.work is None or progress.told >= 2:
            return True
        progress.told = 2
        try:
            step.result = step.work()
        except Exception as error:  # noqa: BLE001  the membership reports it
            step.error = error
        except BaseException as error:  # noqa: BLE001  raised at the end of the step
            step.error = error
            progress.failure = progress.failure or error
        return True

    def _compare(self, step: RebalanceStep, progress: _Progress) -> bool:
        if step.kind is StepKind.ASSIGN:
            progress.added = set(step.partitions) - self._subscription.assigned()
        return True

    def _take(self, step: RebalanceStep, progress: _Progress) -> bool:  # noqa: ARG002
        if step.kind is StepKind.ASSIGN:
            self._subscription.assign_from_group(step.partitions, step.topic_ids)
        return True

    def _tell_added(self, step: RebalanceStep, progress: _Progress) -> bool:
        listener = self._subscription.listener
        if step.kind is StepKind.ASSIGN and listener is not None and progress.told < 3:
            progress.told = 3
            _call(progress, lambda: listener.on_partitions_assigned(progress.added))
        return True

    def _release(self, step: RebalanceStep, progress: _Progress) -> bool:
        if step.kind is StepKind.ASSIGN:
            self._subscription.release(progress.added)
        return True

    def _report(self, step: RebalanceStep, progress: _Progress) -> bool:  # noqa: ARG002
        self._on_step_done(step)
        return True


def _call(progress: _Progress, function: Callable[[], object]) -> None:
    """Run the listener; the step goes on whatever it raises, which comes out at the end."""
    try:
        function()
    except BaseException as error:  # noqa: BLE001  raised at the end of the step
        progress.failure = progress.failure or error
