"""Consumers in simulated worlds: nothing skipped, nothing twice, no commit ahead of the program."""

import pytest

from broker_stub.testing.simulation import explore
from pyclient.consumer.fetch.collector import FetchCollector
from pyclient.consumer.group.classic import ClassicMembership
from pyclient.consumer.offsets.commit import Commit, CommitManager, Committer
from pyclient.consumer.partition_state import PartitionEpoch, PartitionState
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.net.request_manager import PollResult
from pyclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation.consumer_history import consumer_history
from tests.simulation.explorer import explore_slice

pytestmark = pytest.mark.simulation


@pytest.mark.timeout(300)
def test_consumers_skip_nothing_and_commit_nothing_that_was_not_returned() -> None:
    explore_slice("consumer")


@pytest.mark.parametrize("seed", [130])
def test_a_seed_that_once_failed_passes(seed: int) -> None:
    """130: a static leader came back to an assignment without a topic that it alone read."""
    consumer_history(seed)


def test_the_check_finds_commits_from_the_fetch_position(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(subscription: SubscriptionState) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            partition: OffsetAndMetadata(state.fetch_offset, "", -1)
            for partition, state in subscription._partitions.items()
            if state.position is not None
        }

    monkeypatch.setattr(SubscriptionState, "positions", fetched)
    with pytest.raises(AssertionError, match="which nobody got"):
        explore(consumer_history, range(200))


def test_the_check_finds_a_stale_fetch_that_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_any_epoch(subscription: SubscriptionState, at: PartitionEpoch) -> PartitionState | None:
        return subscription._partitions.get(at.partition)

    monkeypatch.setattr(SubscriptionState, "_in_epoch", in_any_epoch)
    monkeypatch.setattr(FetchCollector, "_is_next", lambda *_: True)
    with pytest.raises(
        AssertionError, match=r"non-monotonic|poll skip|nobody got|instead of|not assigned"
    ):
        explore(consumer_history, range(200))


def test_the_check_finds_a_generation_that_is_taken_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit outlives its caller, and is sent in the generation that there is by then."""
    poll = CommitManager.poll

    def poll_late(manager: CommitManager, now_ms: float) -> PollResult:
        membership = manager._membership
        assert isinstance(membership, ClassicMembership)
        committer = membership.committer()
        for commit in manager._waiting:
            if isinstance(committer, Committer):
                commit.committer = committer
            else:
                commit.retry_at_ms = max(commit.retry_at_ms, now_ms + 20)
        return poll(manager, now_ms)

    monkeypatch.setattr(CommitManager, "poll", poll_late)
    monkeypatch.setattr(Commit, "abandon", lambda _: None)
    with pytest.raises(AssertionError, match=r"did not own that|which belongs to"):
        explore(consumer_history, range(200))
