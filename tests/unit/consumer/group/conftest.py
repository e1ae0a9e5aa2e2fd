"""A member of a group, and a coordinator that answers by hand."""

import pytest

from pyclient.consumer.group.assignors import Assignment, MemberSubscription, configured_assignors
from pyclient.consumer.group.classic import ClassicMembership
from pyclient.consumer.group.consumer_protocol import encode_assignment, encode_subscription
from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.group.member import GroupOptions
from pyclient.consumer.group.membership import StepKind
from pyclient.consumer.group.poll_interval import PollTimer
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.rebalance import Rebalancer
from pyclient.consumer.rebalance_listener import ConsumerRebalanceListener
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.net.request_manager import coordinator_connection
from pyclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.consumer_parts import FakeCluster, new_backoff, new_inbox

COORDINATOR = coordinator_connection(1)


class Listener(ConsumerRebalanceListener):
    def __init__(self):
        self.calls = []
        self.raises = None

    def on_partitions_revoked(self, revoked):
        self._note("revoked", revoked)

    def on_partitions_assigned(self, assigned):
        self._note("assigned", assigned)

    def on_partitions_lost(self, lost):
        self._note("lost", lost)

    def _note(self, what, partitions):
        self.calls.append((what, sorted(number for _, number in partitions)))
        if self.raises is not None:
            raise self.raises


class Nodes:
    def __init__(self):
        self.disconnected = []

    def add_node(self, broker):
        pass

    def disconnect(self, node, now_ms):
        self.disconnected.append(node)

    def in_flight_count(self, node):
        return 0


class GroupWorld:
    """A membership in group g, subscribed to topic orders with three partitions.

    `poll` is a turn of the I/O thread, `call_poll` what the caller's thread does in its poll. Steps
    that only run the assignors are done at once, as if the caller always sat in a poll.
    """

    def __init__(self, assignors=("range", "roundrobin"), **options):
        self.now_ms = 0.0
        self.cluster = FakeCluster()
        self.cluster.describe({"orders": [1, 1, 1]})
        self.subscription = SubscriptionState(OffsetReset.LATEST)
        self.inbox = new_inbox()
        self.listener = Listener()
        self.commits = 0
        self.commit = None  # what the automatic commit before a revocation returns
        self.nodes = Nodes()
        self.interest = TopicInterest(self.subscription, self.cluster, self.inbox, True)
        self.coordinator = CoordinatorFinder("g", self.nodes, new_backoff(), self.inbox)
        self.poll_timer = PollTimer(300_000)
        self.rebalancer = Rebalancer(
            self.subscription, lambda: self, lambda step: self.member.on_step_done(step)
        )
        self.member = ClassicMembership(
            GroupOptions("g", **options),
            configured_assignors(assignors),
            self.subscription,
            self.cluster,
            self.interest,
            self.coordinator,
            self.poll_timer,
            new_backoff(),
            self.inbox,
            self.rebalancer.run,
        )

    def before_revocation(self, partitions):
        self.commits += 1
        return self.commit

    def revocation_done(self, commit):
        self.commit = None

    # --- the threads -------------------------------------------------------------------------

    def subscribe(self, *topics):
        self.subscription.subscribe_topics(topics, self.listener)
        self.member.on_subscription()

    def poll(self):
        """All requests of one turn; the coordinator is found at once."""
        requests = list(self.member.poll(self.now_ms).requests)
        for unsent in self.coordinator.poll(self.now_ms).requests:
            unsent.on_done(FindCoordinatorResponse(node_id=1, host="h", port=1), self.now_ms)
            requests += self.member.poll(self.now_ms).requests
        step = self.member._step
        if (
            step is not None
            and not step.partitions
            and step.kind
            in (
                StepKind.WORK,
                StepKind.REVOKE,
            )
        ):
            self.inbox.run()
            requests += self.poll()
        return requests

    def sent(self, kind):
        """The one request of this turn, which is of this kind."""
        (unsent,) = self.poll()
        assert isinstance(unsent.request, kind)
        assert unsent.node == COORDINATOR
        return unsent

    def call_poll(self):
        self.poll_timer.polled(self.now_ms)
        self.inbox.run()

    def after(self, milliseconds):
        self.now_ms += milliseconds
        return self

    def answer(self, unsent, outcome):
        unsent.on_done(outcome, self.now_ms)

    # --- a whole way into the group ----------------------------------------------------------

    def join(self, *numbers, leader="other", generation=1):
        """From about to join to stable, with these partitions of orders."""
        self.call_poll()
        join = self.sent(JoinGroupRequest)
        self.answer(join, joined(leader=leader, generation=generation))
        sync = self.sent(SyncGroupRequest)
        self.answer(sync, synced(*numbers))
        self.call_poll()
        return self

    def heartbeat(self, error=0):
        """The next heartbeat gets this answer."""
        self.after(3_000)
        unsent = next(u for u in self.poll() if isinstance(u.request, HeartbeatRequest))
        self.answer(unsent, HeartbeatResponse(error_code=error))
        return unsent.request


def joined(*, leader="other", generation=1, members=(), protocol="range", **options):
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=protocol,
        leader=leader,
        member_id="me",
        members=[
            JoinGroupResponseMember(
                member_id=name, metadata=encode_subscription(MemberSubscription(topics=topics))
            )
            for name, topics in members
        ],
        **options,
    )


def synced(*numbers, topic="orders"):
    return SyncGroupResponse(assignment=encode_assignment(Assignment({topic: numbers})))


@pytest.fixture
def world():
    world = GroupWorld()
    world.subscribe("orders")
    return world
