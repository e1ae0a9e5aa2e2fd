"""A member under random answers, errors and calls: its listener is told the truth, and it settles.

The I/O thread acts also while the caller's thread is inside a listener.
"""

import random
import re
from collections import deque
from contextlib import suppress

import pytest

from pyclient.consumer.group.member_state import MemberState
from pyclient.consumer.pending import Pending
from pyclient.errors import (
    CoordinatorLoadInProgressError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.unit.consumer.group.conftest import GroupWorld, Listener, joined, synced

SEEDS = 60
ACTIONS = 150
CALM_TURNS = 60
ABOUT_MEMBER = (
    UnknownMemberIdError,
    IllegalGenerationError,
    RebalanceInProgressError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    CoordinatorLoadInProgressError,
    NotCoordinatorError,
)
RESPONSES = {
    JoinGroupRequest: JoinGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
    HeartbeatRequest: HeartbeatResponse,
    LeaveGroupRequest: LeaveGroupResponse,
}


class Interrupted(Exception):
    """What a listener raises."""


class TruthfulListener(Listener):
    """Knows what it was told, and lets the other thread act meanwhile."""

    def __init__(self, story):
        super().__init__()
        self.story = story
        self.owned = set()

    def on_partitions_assigned(self, assigned):
        assert not assigned & self.owned, f"told twice of {assigned & self.owned}"
        self.owned |= assigned
        self.story.inside_listener()

    def on_partitions_revoked(self, revoked):
        assert revoked <= self.owned, f"never had {revoked - self.owned}"
        self.owned -= revoked
        self.story.inside_listener()

    def on_partitions_lost(self, lost):
        self.on_partitions_revoked(lost)


class Story(GroupWorld):
    """One interleaving; what a seed decides happens again with it."""

    def __init__(self, seed, assignor, **options):
        self.chance = random.Random(seed)
        super().__init__((assignor,), **options)
        self.listener = TruthfulListener(self)
        self.submitted = deque()  # what the caller's thread gave to the I/O thread
        self.in_flight = deque()
        self.generation = 0
        self.last_share = ()
        self.is_calm = False
        self.rebalancer._on_step_done = lambda step: self.submitted.append(
            lambda: self.member.on_step_done(step)
        )
        self.inbox._submit = self.submitted.append

    # --- the I/O thread ----------------------------------------------------------------------

    def turn(self):
        while self.submitted:
            self.submitted.popleft()()
        self.in_flight += self.member.poll(self.now_ms).requests
        for unsent in self.coordinator.poll(self.now_ms).requests:
            found = FindCoordinatorResponse(node_id=1, host="h", port=1)
            unsent.on_done(found, self.now_ms)
        if self.in_flight and (self.is_calm or self.chance.random() < 0.6):
            self.answer_first()

    def answer_first(self):
        unsent = self.in_flight.popleft()
        if not self.is_calm and self.chance.random() < 0.05:
            for lost in (unsent, *self.in_flight):
                lost.on_done(KafkaConnectionError(), self.now_ms)
            self.in_flight.clear()
        elif not self.is_calm and self.chance.random() < 0.15:
            error = self.chance.choice(ABOUT_MEMBER)
            response = RESPONSES[type(unsent.request)](error_code=error.code)
            self.answer(unsent, response)
        else:
            self.answer(unsent, self.good_answer(unsent.request))

    def good_answer(self, request):
        if isinstance(request, JoinGroupRequest):
            if not request.member_id and self.chance.random() < 0.5:
                return JoinGroupResponse(error_code=MemberIdRequiredError.code, member_id="me")
            self.generation += 1
            leads = self.chance.random() < 0.5
            topics = tuple(self.subscription.topics)
            return joined(
                leader="me" if leads else "other",
                generation=self.generation,
                members=[("me", topics), ("other", ("orders", "others"))] if leads else (),
                protocol=request.protocols[0].name,
            )
        if isinstance(request, SyncGroupRequest):
            count = self.chance.randrange(4)
            self.last_share = tuple(sorted(self.chance.sample(range(3), min(count, 3))))
            return synced(*self.last_share)
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse()
        return LeaveGroupResponse()

    # --- the caller's thread -----------------------------------------------------------------

    def before_revocation(self, partitions):
        if self.is_calm or self.chance.random() < 0.5:
            return None
        self.commit = Pending(lambda: None)
        return self.commit

    def inside_listener(self):
        for _ in range(self.chance.randrange(4)):
            self.chance.choice((self.turn, self.time_passes, self.refuse_commit))()
        if not self.is_calm and self.chance.random() < 0.05:
            raise Interrupted

    def call_poll(self):
        self.poll_timer.polled(self.now_ms)
        try:
            self.inbox.run()
        except (Interrupted, KafkaError):
            return
        if self.inbox.is_empty:
            assert self.listener.owned == self.subscription.assigned()

    def end_commit(self):
        if self.commit is not None and not self.commit.is_done:
            self.commit.complete(None)

    def unsubscribe(self):
        with suppress(Interrupted):
            self.rebalancer.give_up_all(isinstance(self.member.committer(), KafkaError))
        self.submitted.append(lambda: self.member.leave("test"))
        self.turn()
        self.subscription.unsubscribe()
        assert not self.listener.owned

    def subscribe_again(self):
        self.unsubscribe()
        self.change_subscription()

    def change_subscription(self):
        topics = self.chance.choice((("orders",), ("orders", "bills"), ("bills",)))
        if self.subscription.has_auto_assigned_partitions():
            is_pattern = self.subscription._pattern is not None
        else:
            is_pattern = self.chance.random() < 0.3
        if is_pattern:
            pattern = re.compile("|".join(topics))
            self.subscription.subscribe_pattern(pattern, self.listener)
        else:
            self.subscription.subscribe_topics(topics, self.listener)
        self.submitted.append(self.member.on_subscription)

    # --- the world ---------------------------------------------------------------------------

    def time_passes(self):
        self.now_ms += self.chance.choice((1, 100, 3_000, 3_000, 50_000, 400_000))

    def new_metadata(self):
        shapes = ({"orders": [1] * 3}, {"orders": [1] * 3, "bills": [1]}, {"others": [1]})
        snapshot = self.cluster.describe(self.chance.choice(shapes))
        self.interest.on_metadata(snapshot)
        self.member.on_metadata(snapshot)

    def refuse_commit(self):
        committer = self.member.committer()
        if not isinstance(committer, KafkaError):
            self.member.on_commit_error(self.chance.choice(ABOUT_MEMBER)(), committer)

    def enforce(self):
        self.member.enforce_rebalance("test")

    def act(self):
        self.chance.choices(
            (
                self.turn,
                self.call_poll,
                self.time_passes,
                self.new_metadata,
                self.refuse_commit,
                self.end_commit,
                self.enforce,
                self.change_subscription,
                self.subscribe_again,
            ),
            (40, 25, 12, 5, 3, 6, 2, 3, 1),
        )[0]()

    def calm_down(self):
        self.is_calm = True
        self.end_commit()
        self.unsubscribe()
        self.subscription.subscribe_topics(("orders",), self.listener)
        self.submitted.append(self.member.on_subscription)
        for _ in range(CALM_TURNS):
            self.turn()
            self.cluster.describe({"orders": [1] * 3, "others": [1]})
            self.call_poll()
            self.now_ms += 500


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("options", [{}, {"group_instance_id": "i"}], ids=["dynamic", "static"])
def test_a_listener_is_told_the_truth_and_the_member_settles(assignor, options):
    for seed in range(SEEDS):
        story = Story(seed, assignor, **options)
        story.subscribe("orders")
        try:
            for _ in range(ACTIONS):
                story.act()
            story.calm_down()
            assert story.member.state is MemberState.STABLE
            assert {number for _, number in story.listener.owned} == set(story.last_share)
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
