"""A history of consumers: groups of 1 to 10 members, and readers without a group.

They join, leave, crash and stall under all that can go wrong, over topics with control batches and
aborted transactions, one of which is deleted and created again; the broker's metadata is wrong now
and then. `GroupChecker` judges.
"""

from typing import Any

from broker_stub.dispatch import Intervention
from broker_stub.request import RequestContext
from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.chance import Chance, chance
from broker_stub.testing.simulation.conditions import Conditions, drawn
from broker_stub.testing.simulation.programs import Program
from pyclient.error_codes import LeaderNotAvailableError, UnknownTopicOrPartitionError
from pyclient.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from pyclient.protocol.schema import Message
from tests.simulation.group_checker import GroupChecker
from tests.simulation.group_member import API_TIMEOUT_MS, GroupMember
from tests.simulation.group_records import FLEETING, GroupRecords
from tests.simulation.node_interceptor import NodeInterceptor

GROUP = "kitchen"
COOPERATIVE = ["cooperative-sticky"]
STRATEGIES = (
    ["range"],
    ["roundrobin"],
    ["sticky"],
    ["range", "cooperative-sticky"],
    COOPERATIVE,
    COOPERATIVE,
    COOPERATIVE,
)
STORM_MS = 20_000
# The longest that anything may still hold: a session, a poll interval, a dead connection.
CALM_MS = 15_000
SETTLED_MS = 180_000


class ConsumerWorld:
    """What the programs of a history share.

    Attributes:
        poison: how often a deserializer raises.
        is_calm: nothing goes wrong any more; consumers poll, and do nothing else.
        is_over: everything was read, consumers close.
        heir: the client that has to make its group rebalance, once it is calm.
    """

    def __init__(self, world: Simulation) -> None:
        draw = world.chance("group")
        self.world = world
        self.is_calm = False
        self.is_over = False
        self.heir: str | None = None
        self.poison = draw.choice((0.0, 0.0, 0.01, 0.05))
        self.blips = draw.choice((0.0, 0.0, 0.05, 0.3))
        self._strategies = draw.choice(STRATEGIES)
        self._isolation = draw.choice(("read_committed", "read_uncommitted"))
        self.checker = GroupChecker(world, GROUP, self._strategies == COOPERATIVE)
        self.records = GroupRecords(
            world,
            world.chance("records"),
            self.checker.delivery,
            self._isolation == "read_committed",
        )
        self.checker.records = self.records
        self.topics = ["orders", "payments", FLEETING][: 1 + draw.below(3)]
        for topic in self.topics:
            self.records.create(topic, 1 + draw.below(4))
        self._has_static = draw.happens(0.3)
        self.members = [
            self._member(draw, f"member-{number}")
            for number in range(1 + draw.below(draw.choice((2, 4, 10))))
        ]
        if draw.happens(0.3):
            options = {**self._options(draw), "group_id": None}
            self.members.append(GroupMember(self, "alone", options))
        self._blips = MetadataBlips(self, world.chance("blips"))

    def _member(self, draw: Chance, name: str) -> GroupMember:
        static = {"group_instance_id": name} if self._has_static and draw.happens(0.5) else {}
        return GroupMember(self, name, {**self._options(draw), "group_id": GROUP, **static})

    def _options(self, draw: Chance) -> dict[str, Any]:
        return {
            "auto_offset_reset": "earliest",
            "partition_assignment_strategy": self._strategies,
            "isolation_level": self._isolation,
            "enable_auto_commit": draw.happens(0.6),
            "auto_commit_interval_ms": draw.choice((0, 100, 1_000)),
            "session_timeout_ms": draw.choice((1_500, 6_000)),
            "heartbeat_interval_ms": draw.choice((100, 500)),
            "max_poll_interval_ms": draw.choice((5_000, 10_000)),
            "max_poll_records": draw.choice((1, 5, 500)),
            "fetch_max_wait_ms": draw.choice((50, 500)),
            "max_partition_fetch_bytes": draw.choice((200, 1_048_576)),
            "fetch_buffer_bytes": draw.choice((500, 1_000_000)),
            "enable_incremental_fetch_sessions": draw.happens(0.7),
            "request_timeout_ms": draw.choice((1_000, 3_000)),
            "default_api_timeout_ms": API_TIMEOUT_MS,
            "consumer_timeout_ms": draw.choice((50, 500)),
            "metadata_max_age_ms": draw.choice((1_000, 5_000)),
            "retry_backoff_ms": draw.choice((10, 100, 500)),
            "reconnect_backoff_ms": draw.choice((1, 50)),
            "bootstrap_timeout_ms": 5_000,
        }

    # --- the other programs ------------------------------------------------------------------

    def write(self) -> None:
        """Records come, and the fleeting topic goes and comes."""
        draw = self.world.chance("writer")
        while not self.is_calm:
            self.records.write_some()
            self.world.sleep(draw.choice((1, 20, 100, 500)))
            if draw.happens(0.005):
                self.records.grow(self.topics[0])
            if FLEETING in self.topics and draw.happens(0.02):
                gap_ms = draw.choice((0, 100, 3_000))
                self.records.recreate(FLEETING, 1 + draw.below(3), gap_ms)

    def meddle(self, programs: list[Program]) -> None:
        """Wake and interrupt members at any moment."""
        draw = self.world.chance("meddler")
        pause_ms = draw.choice((20, 200, 1_000, 100_000))
        while not self.is_calm:
            self.world.sleep(draw.uniform(0, 2 * pause_ms))
            if self.is_calm:
                return
            at = draw.below(len(programs))
            consumer = self.members[at].consumer
            if draw.happens(0.5):
                programs[at].interrupt()
            elif consumer is not None:
                consumer.wakeup()

    def judge(self) -> None:
        """Stop all mishaps, and wait until every partition is owned and every record read."""
        world = self.world
        world.sleep(STORM_MS)
        world.calm()
        self.is_calm = True
        world.note("it is calm")
        world.sleep(CALM_MS)
        if FLEETING in self.topics and FLEETING not in self.records.lives:
            self.records.adopt(FLEETING)
            if FLEETING not in self.records.lives:
                self.records.recreate(FLEETING, 1, 0)
        self.records.adopt_partitions()
        for partition in self.records.partitions():
            self.records.write(partition, only_data=True)
        self.heir = self.checker.heir
        world.run_until(lambda: self.checker.unsettled() is None, SETTLED_MS)
        unsettled = self.checker.unsettled()
        assert unsettled is None, f"it has been calm for {SETTLED_MS / 1000:.0f} s: {unsettled}"
        self.is_over = True


class MetadataBlips(NodeInterceptor):
    """Answers Metadata wrongly now and then: no topics, an unknown one, one without leaders."""

    def __init__(self, history: ConsumerWorld, draw: Chance) -> None:
        self._history = history
        self._chance = draw
        super().__init__(history.world)

    def on_response(
        self,
        request: Message,
        response: Message | None,
        context: RequestContext,
    ) -> Intervention | None:
        """Falsify the response, by chance."""
        history, draw = self._history, self._chance
        if not isinstance(response, MetadataResponse) or not response.topics or history.is_calm:
            return None
        if not draw.happens(history.blips):
            return None
        how = draw.choice(("nothing", "unknown", "no leader"))
        history.world.note("tells %s of %s", context.client_id, how)
        if how == "nothing":
            topics = []
        else:
            victim = draw.below(len(response.topics))
            topics = [
                _wrong(topic, how) if at == victim else topic
                for at, topic in enumerate(response.topics)
            ]
        return Intervention(
            response=MetadataResponse(
                throttle_time_ms=response.throttle_time_ms,
                brokers=response.brokers,
                cluster_id=response.cluster_id,
                controller_id=response.controller_id,
                topics=topics,
            )
        )


def _wrong(topic: MetadataResponseTopic, how: str) -> MetadataResponseTopic:
    if how == "unknown":
        code: int = UnknownTopicOrPartitionError.code
        return MetadataResponseTopic(error_code=code, name=topic.name)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            type(one)(
                error_code=LeaderNotAvailableError.code,
                partition_index=one.partition_index,
                leader_id=-1,
                leader_epoch=one.leader_epoch,
                replica_nodes=one.replica_nodes,
                isr_nodes=one.isr_nodes,
                offline_replicas=one.offline_replicas,
            )
            for one in topic.partitions
        ],
    )


def conditions_of(seed: int) -> Conditions:
    """The mishaps of a history; no power losses, since those may lose records."""
    return drawn(chance(seed, "conditions"))._replace(power_loss=0.0)


def consumer_history(seed: int) -> Simulation:
    """Run the history of a seed, and check it; the world, to look at its trace."""
    config = {"group.min.session.timeout.ms": 1_000, "offsets.topic.num.partitions": 1}
    with Simulation(seed, conditions_of(seed), broker_config=config) as world:
        history = ConsumerWorld(world)
        programs = [world.program(one.run, name=one.name) for one in history.members]
        world.program(history.write, name="writer")
        world.program(history.meddle, programs, name="meddler")
        world.program(history.judge, name="judge")
        world.run()
        history.checker.check()
    return world
