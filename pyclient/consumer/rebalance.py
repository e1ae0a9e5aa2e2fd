"""The caller's part of a rebalance: giving partitions up, taking them, telling the listener.

The caller's thread only, inside `poll`, `unsubscribe` or `close`.
"""

import logging
from collections.abc import Callable

from pyclient.consumer.group.membership import RebalanceStep, StepKind
from pyclient.consumer.subscription_state import SubscriptionState

log = logging.getLogger(__name__)


class Rebalancer:
    """Runs the steps that the membership posts."""

    def __init__(
        self,
        subscription: SubscriptionState,
        before_revocation: Callable[[], None],
        on_step_done: Callable[[RebalanceStep], None],
    ) -> None:
        """`before_revocation` commits, if that is automatic; it does not raise."""
        self._subscription = subscription
        self._before_revocation = before_revocation
        self._on_step_done = on_step_done

    def run(self, step: RebalanceStep) -> None:
        """Do a step and report it done, even if the program's listener raises."""
        if step.is_cancelled:
            return
        try:
            if step.kind is StepKind.REVOKE:
                self.revoke_all()
            elif step.kind is StepKind.LOSE:
                self._lose_all()
            else:
                self._assign(step)
        finally:
            self._on_step_done(step)

    def revoke_all(self) -> None:
        """Give up all partitions, with a last chance to commit."""
        subscription = self._subscription
        revoked = subscription.assigned()
        subscription.hold()
        self._before_revocation()
        try:
            if revoked and subscription.listener is not None:
                subscription.listener.on_partitions_revoked(revoked)
        finally:
            subscription.assign_from_group(())

    def _lose_all(self) -> None:
        """Drop partitions that other members may own already: a commit would be refused."""
        subscription = self._subscription
        lost = subscription.assigned()
        subscription.hold()
        try:
            if lost and subscription.listener is not None:
                subscription.listener.on_partitions_lost(lost)
        finally:
            subscription.assign_from_group(())

    def _assign(self, step: RebalanceStep) -> None:
        subscription = self._subscription
        before, after = subscription.assigned(), set(step.partitions)
        listener = subscription.listener
        gone = before - after
        if gone and listener is not None:
            listener.on_partitions_revoked(gone)
        subscription.assign_from_group(step.partitions)
        try:
            if listener is not None:
                listener.on_partitions_assigned(after - before)
        finally:
            subscription.release(step.partitions)
