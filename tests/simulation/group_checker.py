"""What must hold for a group of consumers in every history.

- No partition is owned twice in a generation, and all are owned once things are calm.
- Within an assignment a reader gets every record from its first one on, once and in order.
- Every record is returned to some member, unless one sought past it.
- An accepted commit covers nothing that was not returned, and carries the generation in which
  its member owned the partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from broker_stub.dispatch import Intervention
from broker_stub.request import RequestContext
from broker_stub.testing.delivery_checker import DeliveryChecker
from broker_stub.testing.simulation import Simulation
from pyclient.protocol.messages.join_group import JoinGroupResponse
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from pyclient.protocol.schema import Message
from pyclient.types import ConsumerGroupMetadata, MemberState, TopicPartition
from tests.simulation.group_records import FLEETING, GroupRecords, Life, life_of_value
from tests.simulation.node_interceptor import NodeInterceptor

Returned = Iterable[tuple[TopicPartition, int, bytes]]


class Reader:
    """What is known of one consumer's partitions; its program reports it.

    Attributes:
        name: of its program.
        owned: the partitions, as its listener was told.
        is_fixed: the program has assigned them itself, and gets no new ones.
        last_lives: which life of each partition it reads, in the present assignment.
        last_offsets: the last offset that it got of each life.
    """

    def __init__(self, checker: GroupChecker, name: str, is_member: bool) -> None:
        self.name = name
        self.owned: dict[TopicPartition, None] = {}
        self.is_fixed = False
        self.last_lives: dict[TopicPartition, Life] = {}
        self.last_offsets: dict[Life, int] = {}
        self._checker = checker
        self._is_member = is_member
        self._epochs: defaultdict[TopicPartition, int] = defaultdict(int)
        self._epoch = 0

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions have come; each begins a new assignment."""
        for partition in sorted(partitions):
            assert partition not in self.owned, f"{self.name} got {partition}, and has it already"
            self.owned[partition] = None
            # Without a group nobody else reads: a partition that comes back goes on where it was.
            if self._is_member or partition not in self._epochs:
                self.begin(partition)

    def begin(self, partition: TopicPartition) -> None:
        """Its records may begin anywhere after this: an assignment, or a seek."""
        self._epoch += 1
        self._epochs[partition] = self._epoch
        self.last_lives.pop(partition, None)

    def gone(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions were revoked or lost."""
        for partition in sorted(partitions):
            assert partition in self.owned, f"{self.name} loses {partition}, and does not have it"
            del self.owned[partition]

    def ended(self) -> None:
        """The consumer is closed or has crashed."""
        self.owned.clear()

    def returned(self, records: Returned) -> None:
        """Records were returned to the program."""
        checker = self._checker
        for partition, offset, value in records:
            assert partition in self.owned, (
                f"{self.name} got {partition}@{offset}, which is not assigned to it"
            )
            life = life_of_value(value)
            self._check_life(partition, life, offset)
            reader = f"{self.name} ({self._epochs[partition]})"
            checker.delivery.polled(reader, life.key, [(offset, value)])
            self.last_offsets[life] = offset
            if self._is_member:
                checker.records.logs[life].unread.pop(offset, None)

    def _check_life(self, partition: TopicPartition, life: Life, offset: int) -> None:
        before = self.last_lives.get(partition)
        if before is not None and before != life:
            assert before.number < life.number, f"{self.name} got {life} after {before}"
            first = next(iter(self._checker.records.logs[life].data))
            assert offset == first, (
                f"{self.name} reads {life.key} on at {offset} instead of {first}: the topic was"
                " created again"
            )
        self.last_lives[partition] = life


class GroupChecker(NodeInterceptor):
    """Watches a group: its members report to `Reader`s, the broker's commits are seen here."""

    def __init__(self, world: Simulation, group_id: str, is_cooperative: bool) -> None:
        self.delivery = DeliveryChecker(in_order=False)
        self.records: GroupRecords
        self._world = world
        self._group_id = group_id
        self._is_cooperative = is_cooperative
        self._members: list[Reader] = []
        self._alone: list[Reader] = []
        self._owners: dict[tuple[int, TopicPartition], str] = {}
        self._held: dict[tuple[str, int], set[TopicPartition]] = {}
        self._violation: AssertionError | None = None
        self._heir: str | None = None
        super().__init__(world)

    # --- what consumers report ---------------------------------------------------------------

    def member(self, name: str) -> Reader:
        """A member of the group."""
        self._members.append(Reader(self, name, is_member=True))
        return self._members[-1]

    def reader_alone(self, name: str) -> Reader:
        """A consumer without a group."""
        self._alone.append(Reader(self, name, is_member=False))
        return self._alone[-1]

    def owns(
        self,
        name: str,
        metadata: ConsumerGroupMetadata,
        partitions: Collection[TopicPartition],
        *,
        is_assigned: bool = False,
    ) -> None:
        """A consumer says in which generation it is, and what it has.

        What it has while it rebalances is of the generation before, unless the new one has just
        assigned it: a crash of the broker takes back a generation that was not assigned yet.
        """
        generation = metadata.generation_id
        if generation < 0:
            return
        self._held.setdefault((metadata.member_id, generation), set()).update(partitions)
        if not is_assigned and metadata.state != MemberState.STABLE:
            return
        for partition in sorted(partitions):
            owner = self._owners.setdefault((generation, partition), name)
            assert owner == name, (
                f"{partition} is owned twice in generation {generation}: by {owner} and {name}"
            )

    # --- what the broker is asked ------------------------------------------------------------

    def on_response(
        self, request: Message, response: Message | None, context: RequestContext
    ) -> Intervention | None:
        """Look at every commit that was accepted, and at who leads."""
        if isinstance(response, JoinGroupResponse) and not response.error_code:
            if response.leader == response.member_id:
                self._heir = context.client_id if response.skip_assignment else None
        elif isinstance(request, OffsetCommitRequest) and request.group_id == self._group_id:
            assert isinstance(response, OffsetCommitResponse)
            accepted = {
                (topic.topic_id, one.partition_index)
                for topic in response.topics
                for one in topic.partitions
                if not one.error_code
            }
            for topic in request.topics:
                for one in topic.partitions:
                    if (topic.topic_id, one.partition_index) in accepted:
                        life = self.records.life_with_id(topic.topic_id, one.partition_index)
                        who = context.client_id or ""
                        try:
                            self._check_commit(who, request, life, one.committed_offset)
                        except AssertionError as error:  # the broker must not answer it
                            self._violation = self._violation or error
        return None

    def _check_commit(
        self, who: str, request: OffsetCommitRequest, life: Life | None, offset: int
    ) -> None:
        if life is None:  # adopted later
            return
        partition = TopicPartition(life.topic, life.partition)
        generation, member_id = request.generation_id_or_member_epoch, request.member_id
        what = f"{who} commits {life.key}@{offset} in generation {generation}"
        self._world.note("%s", what)
        held = self._held.get((member_id, generation), ())
        if self._is_cooperative:
            owner = self._owners.get((generation, partition))
            assert owner is None or who.startswith(owner), f"{what}, which belongs to {owner}"
        else:
            assert partition in held, f"{what}, in which it did not own that"
        log = self.records.logs[life]
        assert log.first_unread is None or offset <= log.first_unread, (
            f"{what}: ahead of {log.first_unread}, which nobody got"
        )
        assert offset <= log.end_offset, f"{what}: its log ends at {log.end_offset}"

    def raise_violation(self) -> None:
        """Raise what the broker's commits have violated, if anything."""
        if self._violation is not None:
            raise self._violation

    # --- the end -----------------------------------------------------------------------------

    @property
    def heir(self) -> str | None:
        """The client of a static leader that took over the assignment of its last process.

        As in Kafka, it does not notice what changed while it was away: what another member would
        get has no owner until the next rebalance. None if the leader has assigned by itself.
        """
        return self._heir

    def unsettled(self) -> str | None:
        """Why the group is not settled yet: a partition without an owner, an unread record."""
        owned: dict[TopicPartition, str] = {}
        for member in self._members:
            for partition in member.owned:
                if partition in owned:
                    return f"{partition} is owned by {owned[partition]} and {member.name}"
                owned[partition] = member.name
        for partition in self.records.partitions():
            if partition not in owned:
                return f"nobody owns {partition}"
            life = self.records.life_of(partition)
            assert life is not None
            why = self._unread_in(life)
            if why is not None:
                return why
        return None

    def _unread_in(self, life: Life) -> str | None:
        log = self.records.logs[life]
        last = max(log.data, default=-1)
        if life.topic != FLEETING:
            if log.first_unread is not None:
                return f"nobody got {life.key}@{log.first_unread}"
        elif last in log.unread:
            return f"nobody got {life.key}@{last}, the last one"
        for reader in self._alone:
            if reader.is_fixed and (life.topic, life.partition) not in reader.owned:
                continue
            if reader.last_offsets.get(life, -1) < last:
                return f"{reader.name} did not get {life.key}@{last}, the last one"
        return None

    def check(self) -> None:
        """Judge what was returned, by the rules of `DeliveryChecker`."""
        self.raise_violation()
        for life, log in self.records.logs.items():
            self.delivery.log(life.key, log.data.items())
        self.delivery.check()
