"""The cluster: its brokers and controllers, and what lies on their disks."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.partition_keys import partition_name
from pyclient.admin.sending.results import error_of
from pyclient.admin.sending.routes import by_node, to_node
from pyclient.admin.sending.topic_metadata import metadata_request, topics_in
from pyclient.admin.sending.work import Work
from pyclient.admin.types.acls import operation_names
from pyclient.admin.types.cluster import (
    BrokerLogDirs,
    ClusterDescription,
    LogDir,
    QuorumDescription,
)
from pyclient.errors import BrokerResponseError, UnsupportedVersionError, for_code
from pyclient.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from pyclient.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pyclient.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from pyclient.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from pyclient.protocol.messages.metadata import MetadataResponse
from pyclient.timers import Deadline
from pyclient.types import TopicPartition, TopicPartitionReplica

_CLUSTER_METADATA: Final = "__cluster_metadata"


class ClusterCalls(AdminCalls):
    """The calls about brokers, controllers and disks."""

    def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers, and what this client may do to it."""
        deadline = self._requests.deadline()
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        try:
            response = self._requests.ask(request, DescribeClusterResponse, deadline)
        except UnsupportedVersionError:  # before Kafka 2.8
            return self._describe_cluster_by_metadata(deadline)
        described = ClusterDescription.of(response)
        described["cluster_authorized_operations"] = operation_names(
            response.cluster_authorized_operations
        )
        for key in ("throttle_time_ms", "error_code", "error_message", "endpoint_type"):
            del described[key]
        return described

    def _describe_cluster_by_metadata(self, deadline: Deadline) -> ClusterDescription:
        response = self._requests.ask(metadata_request([]), MetadataResponse, deadline)
        described = ClusterDescription.of(response)
        for broker in described.brokers:
            broker["broker_id"] = broker.pop("node_id")
        kept = ("cluster_id", "controller_id", "brokers")
        return ClusterDescription(
            {key: described[key] for key in kept}, cluster_authorized_operations=None
        )

    def describe_metadata_quorum(self) -> QuorumDescription:
        """The cluster's controllers: the leader, and each one's progress."""
        partition = PartitionData(partition_index=0)
        topic = TopicData(topic_name=_CLUSTER_METADATA, partitions=[partition])
        request = DescribeQuorumRequest(topics=[topic])

        def ask_once() -> DescribeQuorumResponse:
            response = self._requests.ask_once(request, DescribeQuorumResponse, deadline, None)
            for one in (one for of in response.topics for one in of.partitions):
                error = error_of(_CLUSTER_METADATA, one)
                if error is not None:
                    raise error
            return response

        deadline = self._requests.deadline()
        described = QuorumDescription.of(self._requests.repeat(ask_once, deadline))
        for of in described.topics:
            for one in of.partitions:
                del one["error_code"], one["error_message"]
                one["error"] = None
        del described["error_code"], described["error_message"]
        return described

    def describe_log_dirs(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[str] | None = None,
        brokers: Iterable[int] | None = None,
    ) -> list[BrokerLogDirs]:
        """The brokers' log directories: their partitions, sizes and free space.

        Args:
            topic_partitions: partitions by topic, or topics with all their partitions; by
                default everything.
            brokers: the ids of the brokers to ask; by default all of them.
        """
        deadline = self._requests.deadline()
        request = DescribeLogDirsRequest(topics=self._log_dir_topics(topic_partitions, deadline))
        described = []
        for broker in self._requests.brokers() if brokers is None else brokers:
            response = self._requests.ask(
                request, DescribeLogDirsResponse, deadline, node=broker, name=f"broker {broker}"
            )
            log_dirs = [LogDir.of(result) for result in response.results]
            described.append(BrokerLogDirs(broker=broker, log_dirs=log_dirs))
        return described

    def _log_dir_topics(
        self, asked: Mapping[str, Iterable[int]] | Iterable[str] | None, deadline: Deadline
    ) -> list[DescribableLogDirTopic] | None:
        if asked is None:
            return None
        if not isinstance(asked, Mapping):
            response = self._requests.ask(metadata_request(asked), MetadataResponse, deadline)
            asked = {
                topic.name or "": [one.partition_index for one in topic.partitions]
                for topic in topics_in(response)
            }
        return [
            DescribableLogDirTopic(topic=topic, partitions=list(partitions))
            for topic, partitions in asked.items()
        ]

    def alter_replica_log_dirs(
        self, replica_assignments: Mapping[TopicPartitionReplica, str]
    ) -> dict[TopicPartitionReplica, type[BrokerResponseError]]:
        """Start to move replicas to other log directories of their brokers.

        The class of the error by replica; `NoError` if it moves. `describe_log_dirs` shows the
        progress.

        Args:
            replica_assignments: the absolute path of the log directory by replica.

        Raises:
            KafkaError: no move could be started.
        """
        deadline = self._requests.deadline()
        replicas = [TopicPartitionReplica(*key) for key in replica_assignments]
        outcomes: dict[TopicPartitionReplica, type[BrokerResponseError]] = {}
        for broker, keys in by_node((key.broker_id, key) for key in replicas).items():
            moves = {TopicPartition(*key[:2]): replica_assignments[key] for key in keys}
            settled = self._requests.settle(
                Work(
                    {key: (key, path) for key, path in moves.items()},
                    _move_request,
                    _moved,
                    partition_name,
                    to_node(broker),
                    deadline,
                    repeatable=True,
                )
            )
            for key, one in settled.items():
                outcomes[TopicPartitionReplica(*key, broker)] = for_code(one.result.error_code)
        return outcomes


def _moved(response: AlterReplicaLogDirsResponse) -> Iterable[tuple[TopicPartition, Any]]:
    return (
        (TopicPartition(topic.topic_name, one.partition_index), one)
        for topic in response.results
        for one in topic.partitions
    )


def _move_request(moves: list[tuple[TopicPartition, str]]) -> AlterReplicaLogDirsRequest:
    dirs: dict[str, dict[str, list[int]]] = {}
    for key, path in moves:
        dirs.setdefault(path, {}).setdefault(key.topic, []).append(key.partition)
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=topic, partitions=of)
                    for topic, of in topics.items()
                ],
            )
            for path, topics in dirs.items()
        ]
    )
