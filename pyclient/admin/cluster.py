"""The cluster: its brokers and controllers, what they can do, what lies on their disks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.results import Result, as_dict, error_of
from pyclient.admin.sending.topic_metadata import metadata_request, topics_in
from pyclient.errors import UnsupportedVersionError, for_code
from pyclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
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
from pyclient.version import __version__

_CLUSTER_METADATA: Final = "__cluster_metadata"


class ClusterCalls(AdminCalls):
    """The calls that describe brokers and controllers."""

    def describe_cluster(self) -> dict[str, Any]:
        """The cluster's id, controller and brokers."""
        deadline = self._requests.deadline()
        try:
            response = self._requests.ask(DescribeClusterRequest(), deadline)
        except UnsupportedVersionError:  # before Kafka 2.8
            return self._describe_cluster_by_metadata(deadline)
        assert isinstance(response, DescribeClusterResponse)
        if response.error_code:
            raise for_code(response.error_code)(response.error_message)
        described = as_dict(response)
        return {key: described[key] for key in ("cluster_id", "controller_id", "brokers")}

    def _describe_cluster_by_metadata(self, deadline: Deadline) -> dict[str, Any]:
        response = self._requests.ask(metadata_request([]), deadline)
        assert isinstance(response, MetadataResponse)
        described = as_dict(response)
        for broker in described["brokers"]:
            broker["broker_id"] = broker.pop("node_id")
        return {key: described[key] for key in ("cluster_id", "controller_id", "brokers")}

    def describe_features(
        self, send_request_to_controller: bool = False
    ) -> dict[str, dict[str, Any]]:
        """Each feature's supported levels, and the cluster's current level.

        Args:
            send_request_to_controller: ask the controller, and not just any broker.
        """
        deadline = self._requests.deadline()
        node = None
        if send_request_to_controller:
            (node,) = self._requests.to_controller([None], deadline)
        request = ApiVersionsRequest(
            client_software_name="kafka-pyclient", client_software_version=__version__
        )
        response = self._requests.ask(request, deadline, node=node)
        assert isinstance(response, ApiVersionsResponse)
        if response.error_code:
            raise for_code(response.error_code)()
        epoch = response.finalized_features_epoch
        found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for able in response.supported_features:
            found[able.name]["supported"] = (able.min_version, able.max_version)
        for final in response.finalized_features:
            levels = (final.min_version_level, final.max_version_level)
            found[final.name]["finalized"] = levels
            found[final.name]["finalized_epoch"] = epoch if epoch >= 0 else None
        return dict(found)

    def describe_metadata_quorum(self) -> dict[str, Any]:
        """The cluster's controllers: the leader, and each one's progress."""
        partition = PartitionData(partition_index=0)
        topic = TopicData(topic_name=_CLUSTER_METADATA, partitions=[partition])
        request = DescribeQuorumRequest(topics=[topic])
        response = self._requests.ask(request, self._requests.deadline())
        assert isinstance(response, DescribeQuorumResponse)
        parts: list[Result] = [response]
        parts += [one for of in response.topics for one in of.partitions]
        for part in parts:
            error = error_of(_CLUSTER_METADATA, part)
            if error is not None:
                raise error
        described = as_dict(response)
        return {key: described[key] for key in ("topics", "nodes")}

    def describe_log_dirs(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[str] | None = None,
        brokers: Iterable[int] | None = None,
    ) -> list[dict[str, Any]]:
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
            response = self._requests.ask(request, deadline, node=broker)
            assert isinstance(response, DescribeLogDirsResponse)
            if response.error_code:
                raise for_code(response.error_code)(f"broker {broker}")
            log_dirs = [as_dict(result) for result in response.results]
            described.append({"broker": broker, "log_dirs": log_dirs})
        return described

    def _log_dir_topics(
        self, asked: Mapping[str, Iterable[int]] | Iterable[str] | None, deadline: Deadline
    ) -> list[DescribableLogDirTopic] | None:
        if asked is None:
            return None
        if not isinstance(asked, Mapping):
            response = self._requests.ask(metadata_request(asked), deadline)
            asked = {
                topic.name or "": [one.partition_index for one in topic.partitions]
                for topic in topics_in(response)
            }
        return [
            DescribableLogDirTopic(topic=topic, partitions=list(partitions))
            for topic, partitions in asked.items()
        ]
