"""The supported APIs: key, module and message classes; and the choice of a version.

Message modules are imported on first use, so that a client loads only the APIs it uses. The version
ranges are declared in the messages; the table only names the APIs.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, NamedTuple

from pyclient.errors import UnsupportedVersionError
from pyclient.protocol.schema import Message

# Kafka's name of each API, by its key. The controllers' quorum (52-54, 58, 59, 70, 73, 80-82),
# share groups (76-79, 83-87, 90-92) and streams groups (88, 89) are not supported.
API_NAMES: Final[Mapping[int, str]] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    55: "DescribeQuorum",
    56: "AlterPartition",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    61: "DescribeProducers",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    67: "AllocateProducerIds",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
}
API_KEYS: Final[Mapping[str, int]] = {name: key for key, name in API_NAMES.items()}


class ApiVersionRange(NamedTuple):
    """The versions of one API that a peer serves, both ends included."""

    lowest: int
    highest: int


def module_name(api_key: int) -> str:
    """The module in `messages` that declares an API: `ListOffsets` is in `list_offsets`."""
    name = _name(api_key)
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.lstrip("_")


def request_class(api_key: int) -> type[Message]:
    """The request of an API.

    Raises:
        UnsupportedVersionError: the API is not supported.
    """
    return _message_class(api_key, "Request")


def response_class(api_key: int) -> type[Message]:
    """The response of an API."""
    return _message_class(api_key, "Response")


def request_classes() -> Iterator[type[Message]]:
    """Every request, in the order of their keys. Imports all message modules."""
    return (request_class(api_key) for api_key in API_NAMES)


_classes: dict[tuple[int, str], type[Message]] = {}


def _message_class(api_key: int, suffix: str) -> type[Message]:
    found = _classes.get((api_key, suffix))
    if found is None:
        module = import_module(f"pyclient.protocol.messages.{module_name(api_key)}")
        found = getattr(module, f"{_name(api_key)}{suffix}")
        _classes[api_key, suffix] = found
    return found


def _name(api_key: int) -> str:
    try:
        return API_NAMES[api_key]
    except KeyError:
        raise UnsupportedVersionError(f"API key {api_key} is not supported") from None


def choose_version(
    request: Message, served: ApiVersionRange | None, transaction_version: int = 0
) -> int:
    """The version to send a request in: the highest both sides know, within what fits it.

    Args:
        request: the message to send; it states its own range (see `Message.version_cap`).
        served: the versions that the broker advertised for this API; None if it did not.
        transaction_version: the cluster's finalized `transaction.version` feature.

    Raises:
        UnsupportedVersionError: the broker lacks the API, or there is no common version.
    """
    name = type(request).__name__
    if served is None:
        raise UnsupportedVersionError(f"the broker does not serve {name}: it is too old for it")
    lowest = request.version_floor()
    highest = min(request.version_cap(transaction_version), served.highest)
    if highest < max(lowest, served.lowest):
        raise UnsupportedVersionError(
            f"no common version of {name}: this one can be sent in versions "
            f"{lowest} to {request.version_cap(transaction_version)}, the broker serves "
            f"{served.lowest} to {served.highest}"
        )
    return highest
