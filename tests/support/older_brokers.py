"""What brokers of earlier releases serve, of the APIs that ours has: the highest version of each.

As Apache Kafka of that release advertises it. An API that is not named did not exist.
"""

from collections.abc import Mapping

from broker_stub import Broker
from broker_stub.handlers import SERVED
from pyclient.protocol.registry import API_KEYS, request_class

_RELEASES = ("2.1", "2.4", "2.8", "3.9")
_SINCE_2_1 = {
    "Produce": (7, 8, 9, 11),
    "Fetch": (10, 11, 12, 17),
    "ListOffsets": (4, 5, 6, 9),
    "Metadata": (7, 9, 11, 12),
    "OffsetCommit": (6, 8, 8, 9),
    "OffsetFetch": (5, 6, 7, 9),
    "FindCoordinator": (2, 3, 3, 6),
    "JoinGroup": (3, 6, 7, 9),
    "Heartbeat": (2, 4, 4, 4),
    "LeaveGroup": (2, 4, 4, 5),
    "SyncGroup": (2, 4, 5, 5),
    "DescribeGroups": (2, 5, 5, 5),
    "ListGroups": (2, 3, 4, 5),
    "ApiVersions": (2, 3, 3, 4),
    "CreateTopics": (3, 5, 7, 7),
    "DeleteTopics": (3, 4, 6, 6),
    "DeleteRecords": (1, 1, 2, 2),
    "InitProducerId": (1, 2, 4, 5),
    "OffsetForLeaderEpoch": (2, 3, 4, 4),
    "DescribeAcls": (1, 1, 2, 3),
    "CreateAcls": (1, 1, 2, 3),
    "DeleteAcls": (1, 1, 2, 3),
    "DescribeConfigs": (2, 2, 4, 4),
    "AlterConfigs": (1, 1, 2, 2),
    "DescribeLogDirs": (1, 1, 2, 4),
    "CreatePartitions": (1, 1, 3, 3),
    "DeleteGroups": (1, 2, 2, 2),
}
_LATER: Mapping[str, Mapping[str, int]] = {
    "IncrementalAlterConfigs": {"2.4": 1, "2.8": 1, "3.9": 1},  # since 2.3
    "DescribeCluster": {"2.8": 0, "3.9": 1},
    "DescribeProducers": {"2.8": 0, "3.9": 0},
    "DescribeTopicPartitions": {"3.9": 0},
}
HIGHEST: Mapping[str, Mapping[str, int]] = {
    release: {
        **{api: versions[index] for api, versions in _SINCE_2_1.items()},
        **{api: versions[release] for api, versions in _LATER.items() if release in versions},
    }
    for index, release in enumerate(_RELEASES)
}
"""By release and API."""


def play(broker: Broker, release: str) -> None:
    """Have our broker serve what one of that release would."""
    known = {API_KEYS[api]: version for api, version in HIGHEST[release].items()}
    for api_key in SERVED:
        if api_key in known:
            broker.faults.hide(request_class(api_key), above=known[api_key])
        else:
            broker.faults.hide(request_class(api_key))
