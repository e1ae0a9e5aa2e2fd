"""The assignors, and `partition.assignment.strategy`, which names them.

- `assignor`: the interface
- `kafka_python`: adapts assignors that were written for kafka-python
- `range`: consecutive partitions of each topic
- `roundrobin`: all partitions in turn
- `sticky`: sticky and cooperative-sticky: balanced, and members keep what they had
- `sticky_claims`: what the members owned before
- `sticky_general`: sticky where members read different topics, or racks matter
- `sticky_uniform`: sticky where all members read the same topics
"""

from collections.abc import Iterable

from pyclient.consumer.group.assignors.assignor import (
    AbstractPartitionAssignor,
    PartitionRacks,
    RebalanceProtocol,
)
from pyclient.consumer.group.assignors.kafka_python import (
    KafkaPythonAssignor,
    is_kafka_python_assignor,
)
from pyclient.consumer.group.assignors.range import RangePartitionAssignor
from pyclient.consumer.group.assignors.roundrobin import RoundRobinPartitionAssignor
from pyclient.consumer.group.assignors.sticky import (
    CooperativeStickyAssignor,
    StickyPartitionAssignor,
)
from pyclient.consumer.group.consumer_protocol import Assignment, MemberSubscription
from pyclient.errors import KafkaConfigurationError

__all__ = [
    "AbstractPartitionAssignor",
    "Assignment",
    "CooperativeStickyAssignor",
    "MemberSubscription",
    "PartitionRacks",
    "RangePartitionAssignor",
    "RebalanceProtocol",
    "RoundRobinPartitionAssignor",
    "StickyPartitionAssignor",
    "configured_assignors",
    "rebalance_protocol",
]

_KEY = "partition.assignment.strategy"
_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
_BY_NAME: dict[str, type[AbstractPartitionAssignor]] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
    f"{_JAVA_PACKAGE}RangeAssignor": RangePartitionAssignor,
    f"{_JAVA_PACKAGE}RoundRobinAssignor": RoundRobinPartitionAssignor,
    f"{_JAVA_PACKAGE}StickyAssignor": StickyPartitionAssignor,
    f"{_JAVA_PACKAGE}CooperativeStickyAssignor": CooperativeStickyAssignor,
}


def configured_assignors(configured: Iterable[object]) -> list[AbstractPartitionAssignor]:
    """The assignors of `partition.assignment.strategy`, in order of preference.

    Each is given as an assignor, a class of one, or a name: Kafka's short one, or that of the
    Java class. kafka-python's assignors are taken, too.

    Raises:
        KafkaConfigurationError: none is given, one is unknown, two have the same name, or no
            rebalance protocol is supported by all.
    """
    assignors = [_assignor(value) for value in configured]
    if not assignors:
        raise KafkaConfigurationError(f"{_KEY} names no assignor", key=_KEY, value=configured)
    names = [assignor.name for assignor in assignors]
    for name in names:
        if names.count(name) > 1:
            raise KafkaConfigurationError(
                f"{_KEY} names the assignor {name!r} twice", key=_KEY, value=configured
            )
    rebalance_protocol(assignors)
    return assignors


def rebalance_protocol(assignors: Iterable[AbstractPartitionAssignor]) -> RebalanceProtocol:
    """The strongest protocol that all the assignors support: what the member rebalances by.

    The coordinator may choose any of the assignors, and a member has to know before it joins
    whether to give up its partitions.

    Raises:
        KafkaConfigurationError: they have none in common.
    """
    supported = {assignor.name: set(assignor.supported_protocols()) for assignor in assignors}
    common = set(RebalanceProtocol).intersection(*supported.values())
    if not common:
        raise KafkaConfigurationError(
            f"{_KEY}: the assignors {', '.join(supported)} support no common rebalance protocol; "
            "configure only eager or only cooperative ones",
            key=_KEY,
            value=list(supported),
        )
    return max(common)


def _assignor(value: object) -> AbstractPartitionAssignor:
    if isinstance(value, str):
        value = _BY_NAME.get(value, value)
    if isinstance(value, AbstractPartitionAssignor):
        return value
    if isinstance(value, type) and issubclass(value, AbstractPartitionAssignor):
        return value()
    if is_kafka_python_assignor(value):
        return KafkaPythonAssignor(value)
    known = ", ".join(name for name in _BY_NAME if "." not in name)
    raise KafkaConfigurationError(
        f"{_KEY}: {value!r} is not an assignor; there are {known}, "
        "subclasses of AbstractPartitionAssignor, and kafka-python's assignors",
        key=_KEY,
        value=value,
    )
