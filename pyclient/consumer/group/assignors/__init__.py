"""The assignors, and how a configuration names them."""

from collections.abc import Iterable

from pyclient.consumer.group.assignors.assignor import (
    AbstractPartitionAssignor,
    MemberSubscription,
    PartitionRacks,
)
from pyclient.consumer.group.assignors.range import RangePartitionAssignor
from pyclient.consumer.group.assignors.roundrobin import RoundRobinPartitionAssignor
from pyclient.errors import KafkaConfigurationError

__all__ = [
    "AbstractPartitionAssignor",
    "MemberSubscription",
    "PartitionRacks",
    "RangePartitionAssignor",
    "RoundRobinPartitionAssignor",
    "configured_assignors",
]

_KEY = "partition.assignment.strategy"
_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
_BY_NAME: dict[str, type[AbstractPartitionAssignor]] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    f"{_JAVA_PACKAGE}RangeAssignor": RangePartitionAssignor,
    f"{_JAVA_PACKAGE}RoundRobinAssignor": RoundRobinPartitionAssignor,
}


def configured_assignors(configured: Iterable[object]) -> list[AbstractPartitionAssignor]:
    """The assignors of `partition.assignment.strategy`, in order of preference.

    Each is given as an assignor, a class of one, or a name: Kafka's short one, or that of the
    Java class.

    Raises:
        KafkaConfigurationError: none is given, one is unknown, or two have the same name.
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
    return assignors


def _assignor(value: object) -> AbstractPartitionAssignor:
    if isinstance(value, AbstractPartitionAssignor):
        return value
    if isinstance(value, type) and issubclass(value, AbstractPartitionAssignor):
        return value()
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]()
    known = ", ".join(name for name in _BY_NAME if "." not in name)
    raise KafkaConfigurationError(
        f"{_KEY}: {value!r} is not an assignor; there are {known}, "
        "and subclasses of AbstractPartitionAssignor",
        key=_KEY,
        value=value,
    )
