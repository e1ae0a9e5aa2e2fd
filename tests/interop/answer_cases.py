"""What to ask our broker and Apache Kafka for, to compare their answers: mistakes, mostly."""

from typing import Any, Final, NamedTuple

from pyclient.protocol.messages import alter_configs, incremental_alter_configs
from pyclient.protocol.schema import Message

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
MANUAL: Final = {"partitions": -1, "replicas": -1}

NEW_TOPICS: Final[list[dict[str, Any]]] = [
    {"name": "answers.two"},
    {"name": "answers_two"},
    {"name": ""},
    {"name": "."},
    {"name": ".."},
    {"name": "a" * 250},
    {"name": "a b"},
    {"name": "__cluster_metadata"},
    {"name": "answers.x", "partitions": 0},
    {"name": "answers.x", "partitions": -2},
    {"name": "answers.x", "replicas": 0},
    {"name": "answers.x", "replicas": -2},
    {"name": "answers.x", "partitions": 0, "replicas": 0},
    {"name": "answers.x", "assignments": [(0, [1])]},
    {"name": "answers.x", "partitions": 1, "replicas": -1, "assignments": [(0, [1])]},
    {"name": "answers.x", **MANUAL, "assignments": [(0, [9])]},
    {"name": "answers.x", **MANUAL, "assignments": [(1, [1])]},
    {"name": "answers.x", **MANUAL, "assignments": [(0, [1]), (0, [1])]},
    {"name": "answers.x", **MANUAL, "assignments": [(0, [1, 1])]},
    {"name": "answers.x", **MANUAL, "assignments": [(0, [9, 9])]},
    {"name": "answers.x", **MANUAL, "assignments": [(0, [])]},
    {"name": "answers.x", **MANUAL, "assignments": [(0, [1]), (1, [1, 2])]},
    {"name": "answers.x", "configs": {"nope": "1"}},
    {"name": "answers.x", "configs": {"nope": "1"}, "replicas": 2},
    {"name": "answers.x", "configs": {"retention.ms": "x"}},
    {"name": "answers.x", "configs": {"retention.ms": ""}},
    {"name": "answers.x", "configs": {"retention.ms": None}},
    {"name": "answers.x", "configs": {"retention.ms": "-2"}},
    {"name": "answers.x", "configs": {"segment.bytes": "99999999999"}},
    {"name": "answers.x", "configs": {"cleanup.policy": "foo"}},
    {"name": "answers.x", "configs": {"cleanup.policy": "delete,foo"}},
    {"name": "answers.x", "configs": {"message.timestamp.type": "createtime"}},
    {"name": "answers.x", "configs": {"min.cleanable.dirty.ratio": "2"}},
    {"name": "answers.x", "configs": {"min.cleanable.dirty.ratio": "-1"}},
    {"name": "answers.x", "configs": {"min.cleanable.dirty.ratio": "x"}},
    {"name": "answers.x", "configs": {"min.insync.replicas": "0"}},
    {"name": "answers.x", "configs": {"preallocate": "maybe"}},
    {
        "name": "answers.x",
        "configs": {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
    },
]


class Change(NamedTuple):
    """Operations on a resource's configuration, for IncrementalAlterConfigs."""

    name: str
    operations: tuple[tuple[str, int, str | None], ...]
    kind: int = TOPIC

    def request(self) -> tuple[Message, int]:
        """The request, and its version."""
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=self.kind,
            resource_name=self.name,
            configs=[
                incremental_alter_configs.AlterableConfig(
                    name=option, config_operation=operation, value=value
                )
                for option, operation, value in self.operations
            ],
        )
        return incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=True
        ), 1


class Replacement(NamedTuple):
    """A whole configuration, for AlterConfigs."""

    name: str
    configs: tuple[tuple[str, str | None], ...]
    kind: int = TOPIC

    def request(self) -> tuple[Message, int]:
        """The request, and its version."""
        resource = alter_configs.AlterConfigsResource(
            resource_type=self.kind,
            resource_name=self.name,
            configs=[
                alter_configs.AlterableConfig(name=option, value=value)
                for option, value in self.configs
            ],
        )
        return alter_configs.AlterConfigsRequest(resources=[resource], validate_only=True), 2


CONFIG_CHANGES: Final = [
    Change("none", (("retention.ms", SET, "5"),)),
    Change("", (("retention.ms", SET, "5"),)),
    Change("a b", (("retention.ms", SET, "5"),)),
    Change("answers.two", (("nope", SET, "5"),)),
    Change("answers.two", (("nope", DELETE, None),)),
    Change("answers.two", (("retention.ms", SET, "x"),)),
    Change("answers.two", (("retention.ms", SET, None),)),
    Change("answers.two", (("retention.ms", APPEND, "5"),)),
    Change("answers.two", (("retention.ms", SUBTRACT, "5"),)),
    Change("answers.two", (("retention.ms", SET, "5"), ("retention.ms", SET, "6"))),
    Change("answers.two", (("cleanup.policy", APPEND, "foo"),)),
    Change("answers.two", (("cleanup.policy", APPEND, "compact"),)),
    Change("answers.two", (("cleanup.policy", SUBTRACT, "nothing"),)),
    Change("answers.two", (("cleanup.policy", SET, "delete,delete"),)),
    Change("answers.two", (("retention.ms", SET, "5"),), kind=3),
    Change("answers.two", (("retention.ms", SET, "5"),), kind=0),
    Change("answers.two", (("retention.ms", SET, "5"),), kind=64),
    Change("9", (("log.retention.ms", SET, "5000000"),), kind=BROKER),
    Change("x", (("log.retention.ms", SET, "5000000"),), kind=BROKER),
    Change("1", (("log.retention.ms", SET, "x"),), kind=BROKER),
    Change("1", (("log.retention.ms", SET, "5000000"),), kind=BROKER),
    Change("", (("log.retention.ms", SET, "5000000"),), kind=BROKER),
    Change("1", (("node.id", SET, "5"),), kind=BROKER),
    Change("1", (("min.insync.replicas", SET, "2"),), kind=BROKER),
    Change("", (("min.insync.replicas", DELETE, None),), kind=BROKER),
    Change("1", (("min.insync.replicas", SET, "0"),), kind=BROKER),
]
OTHER_CONFIG_CHANGES: Final = [
    Replacement("none", (("retention.ms", "5"),)),
    Replacement("", (("retention.ms", "5"),)),
    Replacement("answers.two", (("nope", "5"),)),
    Replacement("answers.two", (("retention.ms", "x"),)),
    Replacement("answers.two", (("retention.ms", None),)),
    Replacement("answers.two", (("retention.ms", "5"), ("retention.ms", "6"))),
    Replacement("answers.two", (("retention.ms", "5"),), kind=3),
    Replacement("9", (("log.retention.ms", "5"),), kind=BROKER),
    Replacement("1", (("node.id", "5"),), kind=BROKER),
    Replacement("", (("log.retention.ms", "5000000"),), kind=BROKER),
]
