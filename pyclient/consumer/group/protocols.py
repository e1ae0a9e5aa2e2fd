"""Makes the membership of a consumer, by the group protocol that it uses.

The one place that knows the implementations; the rest of the consumer has `GroupMembership`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pyclient.consumer.group.assignors import configured_assignors
from pyclient.consumer.group.classic import ClassicMembership
from pyclient.consumer.group.member import GroupOptions

if TYPE_CHECKING:
    from pyclient.config.definition import Config
    from pyclient.consumer.cluster import Cluster
    from pyclient.consumer.group.coordinator import CoordinatorFinder
    from pyclient.consumer.group.membership import GroupMembership, RebalanceStep
    from pyclient.consumer.group.poll_interval import PollTimer
    from pyclient.consumer.inbox import Inbox
    from pyclient.consumer.subscription_state import SubscriptionState
    from pyclient.consumer.topic_interest import TopicInterest
    from pyclient.timers import ExponentialBackoff


class MembershipParts(NamedTuple):
    """What a membership works with, whatever its protocol.

    Attributes:
        run_step: does a step, on the caller's thread, and reports it to `on_step_done`.
    """

    config: Config
    subscription: SubscriptionState
    cluster: Cluster
    interest: TopicInterest
    coordinator: CoordinatorFinder
    poll_timer: PollTimer
    backoff: ExponentialBackoff
    inbox: Inbox
    run_step: Callable[[RebalanceStep], bool]


def new_membership(parts: MembershipParts) -> GroupMembership:
    """A membership by the classic protocol."""
    config = parts.config
    options = GroupOptions(
        config["group.id"],
        config["group.instance.id"],
        config["session.timeout.ms"],
        config["heartbeat.interval.ms"],
        config["max.poll.interval.ms"],
        config["request.timeout.ms"],
        config["client.rack"] or None,
    )
    return ClassicMembership(
        options,
        configured_assignors(config["partition.assignment.strategy"]),
        parts.subscription,
        parts.cluster,
        parts.interest,
        parts.coordinator,
        parts.poll_timer,
        parts.backoff,
        parts.inbox,
        parts.run_step,
    )
