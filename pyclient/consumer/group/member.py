"""Who this member is to the coordinator, and the requests it sends.

Knows no states: `classic.py` decides when to send what. The I/O thread only, but for `metadata`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pyclient.consumer.group.assignors import MemberSubscription
from pyclient.consumer.group.consumer_protocol import PROTOCOL_TYPE, encode_subscription
from pyclient.consumer.offsets.commit import Committer
from pyclient.error_codes import NONE, for_code
from pyclient.errors import InconsistentGroupProtocolError, KafkaError
from pyclient.net.request_manager import Outcome
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from pyclient.types import ConsumerGroupMetadata, TopicPartition

_NO_GENERATION = -1
_REASON_LENGTH_MAX = 255
_JOIN_MARGIN_MS = 5_000


class GroupOptions(NamedTuple):
    """The part of a consumer's configuration that membership needs."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    request_timeout_ms: int = 30_000
    rack_id: str | None = None

    @property
    def join_timeout_ms(self) -> int:
        """How long a join may take: the coordinator waits for the others before it answers."""
        return max(self.request_timeout_ms, self.rebalance_timeout_ms + _JOIN_MARGIN_MS)

    @property
    def join_patience_ms(self) -> int:
        """How long to wait for the answer to a join before the connection is suspected."""
        return max(self.request_timeout_ms, self.session_timeout_ms)


class Generation(NamedTuple):
    """A generation that this member is part of."""

    generation_id: int
    member_id: str
    protocol_name: str


class Member:
    """One member of a classic group.

    Attributes:
        member_id: what the coordinator calls it; empty before it is given a name.
        generation: what it is part of; None outside of any.
    """

    def __init__(self, options: GroupOptions, assignors: Collection[str]) -> None:
        """`assignors` are the names that it offers."""
        self.options = options
        self._assignors = assignors
        self.member_id = ""
        self.generation: Generation | None = None
        self._last_generation: Generation | None = None

    @property
    def is_static(self) -> bool:
        """Whether it has a `group.instance.id`, and so keeps its partitions over a restart."""
        return self.options.group_instance_id is not None

    def forget(self, keep_member_id: bool) -> None:
        """Drop the generation."""
        self._last_generation = self.generation or self._last_generation
        self.generation = None
        if not keep_member_id:
            self.member_id = ""

    def committer(self) -> Committer | None:
        """The member as a committer; None without a generation."""
        if self.generation is None:
            return None
        generation_id, member_id, _ = self.generation
        return Committer(generation_id, member_id, self.options.group_instance_id)

    def metadata(self, state: str) -> ConsumerGroupMetadata:
        """A snapshot for the program. Any thread.

        After the membership is lost, the generation that it was lost in: the coordinator refuses
        a transaction's offsets with it. Without one it would accept them, unchecked.
        """
        generation_id, member_id, _ = (
            self.generation or self._last_generation or (_NO_GENERATION, "", "")
        )
        options = self.options
        return ConsumerGroupMetadata(
            options.group_id, generation_id, member_id, options.group_instance_id, state
        )

    def join_request(
        self,
        topics: frozenset[str],
        user_data: Mapping[str, bytes | None],
        owned: Iterable[TopicPartition],
        reason: str,
    ) -> JoinGroupRequest:
        """Join, offering the assignors of `user_data` in this order of preference.

        Args:
            topics: what this member reads.
            user_data: what each assignor tells the leader's.
            owned: the partitions that it keeps meanwhile, under the cooperative protocol.
            reason: why it joins, for the coordinator's log.
        """
        generation_id = self.generation.generation_id if self.generation else _NO_GENERATION
        by_topic: dict[str, list[int]] = {}
        for topic, number in owned:
            by_topic.setdefault(topic, []).append(number)

        def subscription_with(data: bytes | None) -> bytes:
            return encode_subscription(
                MemberSubscription(
                    topics=tuple(topics),
                    rack_id=self.options.rack_id,
                    owned_partitions=by_topic,
                    generation_id=generation_id,
                    user_data=data,
                )
            )

        return JoinGroupRequest(
            group_id=self.options.group_id,
            session_timeout_ms=self.options.session_timeout_ms,
            rebalance_timeout_ms=self.options.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.options.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription_with(data))
                for name, data in user_data.items()
            ],
            reason=reason[:_REASON_LENGTH_MAX],
        )

    def sync_request(self, assignments: list[SyncGroupRequestAssignment]) -> SyncGroupRequest:
        """Ask for this member's partitions; the leader hands in everybody's."""
        generation = self._present()
        return SyncGroupRequest(
            group_id=self.options.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self.options.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=generation.protocol_name,
            assignments=assignments,
        )

    def heartbeat_request(self) -> HeartbeatRequest:
        generation = self._present()
        return HeartbeatRequest(
            group_id=self.options.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self.options.group_instance_id,
        )

    def leave_request(self, reason: str) -> LeaveGroupRequest:
        """A LeaveGroup request."""
        identity = MemberIdentity(
            member_id=self.member_id,
            group_instance_id=self.options.group_instance_id,
            reason=reason[:_REASON_LENGTH_MAX],
        )
        # Both ways: brokers before 2.4 know the first, later ones the second.
        return LeaveGroupRequest(
            group_id=self.options.group_id, member_id=self.member_id, members=[identity]
        )

    def mismatch_of(self, outcome: Outcome) -> KafkaError | None:
        """The error, if a join or sync belongs to a group of another kind, or by other rules."""
        if not isinstance(outcome, JoinGroupResponse | SyncGroupResponse):
            return None
        kind, name = outcome.protocol_type, outcome.protocol_name
        if kind not in (None, PROTOCOL_TYPE):  # brokers before 2.4 do not tell
            return InconsistentGroupProtocolError(
                f"group {self.options.group_id!r} is of type {kind!r} and not {PROTOCOL_TYPE!r}: "
                "give the consumer a group of its own"
            )
        if isinstance(outcome, JoinGroupResponse):
            expected = self._assignors
        elif name is None:
            return None
        else:
            expected = (self._present().protocol_name,)
        if name in expected:
            return None
        return InconsistentGroupProtocolError(
            f"the coordinator chose {name!r} as the assignor; expected was {', '.join(expected)}"
        )

    def _present(self) -> Generation:
        assert self.generation is not None, "syncs and heartbeats belong to a generation"
        return self.generation


def failure_of(outcome: Outcome, doing: str) -> KafkaError | None:
    """The error of a request: from the network, or from the coordinator's response."""
    if isinstance(outcome, KafkaError):
        return outcome
    code: int = getattr(outcome, "error_code", NONE)
    return None if code == NONE else for_code(code)(doing)
