"""confluent-kafka's view of a cluster, as `list_topics` returns it."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyclient.admin.admin import KafkaAdminClient
from pyclient.compat.confluent.error import KafkaError, exception
from pyclient.config import admin as admin_config
from pyclient.errors import KafkaError as ClientError
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from pyclient.types import format_uuid


class BrokerMetadata:
    """A broker."""

    def __init__(self, broker_id: int, host: str, port: int) -> None:
        self.id = broker_id
        self.host = host
        self.port = port

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


class PartitionMetadata:
    """A partition of a topic."""

    def __init__(self, partition: Any) -> None:
        self.id: int = partition.partition_index
        self.leader: int = partition.leader_id
        self.replicas: list[int] = list(partition.replica_nodes)
        self.isrs: list[int] = list(partition.isr_nodes)
        code = partition.error_code
        self.error = KafkaError(code) if code else None

    def __repr__(self) -> str:
        return f"PartitionMetadata({self.id}, leader {self.leader})"

    def __str__(self) -> str:
        return str(self.id)


class TopicMetadata:
    """A topic and its partitions, by number."""

    def __init__(self, topic: Any) -> None:
        self.topic: str = topic.name
        self.topic_id = format_uuid(topic.topic_id)
        self.is_internal: bool = topic.is_internal
        self.partitions = {
            partition.partition_index: PartitionMetadata(partition)
            for partition in topic.partitions
        }
        self.error = KafkaError(topic.error_code) if topic.error_code else None

    def __repr__(self) -> str:
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions)"

    def __str__(self) -> str:
        return self.topic


class ClusterMetadata:
    """Brokers and topics, by id and name."""

    def __init__(self, response: Any) -> None:
        self.cluster_id: str | None = response.cluster_id
        self.controller_id: int = response.controller_id
        self.brokers = {
            broker.node_id: BrokerMetadata(broker.node_id, broker.host, broker.port)
            for broker in response.brokers
        }
        self.topics = {topic.name: TopicMetadata(topic) for topic in response.topics}
        self.orig_broker_id = -1
        self.orig_broker_name: str | None = None

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"

    def __str__(self) -> str:
        return str(self.cluster_id)


class ClusterQueries:
    """Asks the cluster about itself, by an admin client that is made when it is needed."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        known = admin_config.DEFINITION.keys
        self._options = {name: value for name, value in options.items() if name in known}
        self._lock = threading.Lock()
        self._admin: KafkaAdminClient | None = None

    def metadata(self, topic: str | None, timeout: float) -> ClusterMetadata:
        """Describe the cluster, with one topic or all.

        Raises:
            KafkaException: it was not possible in time.
        """
        topics = None if topic is None else [MetadataRequestTopic(name=topic)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        try:
            requests = self.client()._requests
            deadline = requests.deadline(None if timeout < 0 else timeout * 1000)
            return ClusterMetadata(requests.ask(request, MetadataResponse, deadline))
        except ClientError as error:
            raise exception(error) from error

    def client(self) -> KafkaAdminClient:
        """The admin client."""
        with self._lock:
            if self._admin is None:
                self._admin = KafkaAdminClient(**self._options)
            return self._admin

    def close(self) -> None:
        """End the admin client, if there is one."""
        with self._lock:
            if self._admin is not None:
                self._admin.close()
                self._admin = None

    def __del__(self) -> None:
        # confluent-kafka's clients end when the program drops them.
        with suppress(Exception):
            self.close()
