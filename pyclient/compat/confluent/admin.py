"""confluent-kafka's `AdminClient` over `KafkaAdminClient`: calls that return futures.

Each item of a call is a request of its own on a small pool of threads, so that one item's error
is that item's.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

from pyclient.admin import ConfigResource as _Resource
from pyclient.admin import KafkaAdminClient
from pyclient.admin import NewPartitions as _NewPartitions
from pyclient.admin import NewTopic as _NewTopic
from pyclient.compat.confluent.admin_types import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    DeletedRecords,
    DescribeClusterResult,
    IsolationLevel,
    ListConsumerGroupsResult,
    ListOffsetsResultInfo,
    MemberAssignment,
    MemberDescription,
    NewPartitions,
    NewTopic,
    Node,
    OffsetSpec,
    ResourceType,
    TopicCollection,
    TopicDescription,
    TopicPartitionInfo,
)
from pyclient.compat.confluent.cluster_metadata import (
    BrokerMetadata,
    ClusterMetadata,
    ClusterQueries,
    PartitionMetadata,
    TopicMetadata,
)
from pyclient.compat.confluent.configuration import ADMIN, refused, translate
from pyclient.compat.confluent.error import (
    INVALID_ARG,
    NOT_IMPLEMENTED,
    KafkaError,
    KafkaException,
    exception,
    failure,
)
from pyclient.compat.confluent.topic_partition import OFFSET_INVALID, TopicPartition, ours, theirs
from pyclient.errors import BrokerResponseError, KafkaConfigurationError, NoError
from pyclient.errors import KafkaError as ClientError
from pyclient.types import OffsetAndMetadata

__all__ = [
    "AdminClient",
    "AlterConfigOpType",
    "BrokerMetadata",
    "ClusterMetadata",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConsumerGroupDescription",
    "ConsumerGroupListing",
    "DeletedRecords",
    "DescribeClusterResult",
    "KafkaException",
    "ListConsumerGroupsResult",
    "ListOffsetsResultInfo",
    "MemberAssignment",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionMetadata",
    "ResourceType",
    "TopicDescription",
    "TopicMetadata",
]

_THREADS = 4

Item = TypeVar("Item")
Result = TypeVar("Result")


class AdminClient:
    """Manages a cluster; every call returns a future, or one for each item."""

    def __init__(self, *config: Mapping[str, Any], **options: Any) -> None:
        """Take a dict of librdkafka's options, and keywords with underscores for dots."""
        translated = translate(ADMIN, config, options)
        try:
            self._queries = ClusterQueries(translated.options)
            self._admin: KafkaAdminClient = self._queries.client()
        except KafkaConfigurationError as error:
            raise refused(error) from error
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="pyclient-admin")

    # --- topics ------------------------------------------------------------------------------

    def create_topics(
        self, new_topics: Sequence[NewTopic], validate_only: bool = False, **timeouts: float
    ) -> dict[str, Future[None]]:
        """Create topics; a future by name."""
        admin = self._within(timeouts)

        def create(topic: NewTopic) -> None:
            assignment = topic.replica_assignment
            made = _NewTopic(
                topic.topic,
                -1 if assignment else topic.num_partitions,
                -1 if assignment else topic.replication_factor,
                dict(enumerate(map(list, assignment))) if assignment else None,
                topic.config,
            )
            admin.create_topics([made], validate_only=validate_only)

        return self._each({topic.topic: topic for topic in _checked(new_topics, NewTopic)}, create)

    def delete_topics(self, topics: Sequence[str], **timeouts: float) -> dict[str, Future[None]]:
        """Delete topics; a future by name."""
        admin = self._within(timeouts)

        def delete(topic: str) -> None:
            admin.delete_topics([topic])

        return self._each({topic: topic for topic in _checked(topics, str)}, delete)

    def create_partitions(
        self,
        new_partitions: Sequence[NewPartitions],
        validate_only: bool = False,
        **timeouts: float,
    ) -> dict[str, Future[None]]:
        """Give topics more partitions; a future by name."""
        admin = self._within(timeouts)

        def grow(one: NewPartitions) -> None:
            assignment = one.replica_assignment
            made = _NewPartitions(
                one.new_total_count, None if assignment is None else [list(of) for of in assignment]
            )
            admin.create_partitions({one.topic: made}, validate_only=validate_only)

        return self._each({one.topic: one for one in _checked(new_partitions, NewPartitions)}, grow)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Brokers, topics and their partitions. Waits for the answer."""
        return self._queries.metadata(topic, timeout)

    def cluster_id(self, timeout: float = -1) -> str | None:
        """The id of the cluster. Waits for the answer."""
        return self._queries.metadata(None, timeout).cluster_id

    def describe_topics(
        self, topics: TopicCollection, **timeouts: float
    ) -> dict[str, Future[TopicDescription]]:
        """Describe topics; a future by name."""
        timeout = _seconds(timeouts)

        def describe(name: str) -> TopicDescription:
            cluster = self._queries.metadata(name, timeout)
            topic = cluster.topics[name]
            if topic.error is not None:
                raise KafkaException(topic.error)
            nodes = _nodes(cluster)
            partitions = [
                TopicPartitionInfo(
                    one.id,
                    nodes.get(one.leader),
                    [nodes[node] for node in one.replicas if node in nodes],
                    [nodes[node] for node in one.isrs if node in nodes],
                )
                for one in topic.partitions.values()
            ]
            return TopicDescription(name, topic.topic_id, topic.is_internal, partitions)

        return self._each({name: name for name in topics.topic_names}, describe)

    def describe_cluster(self, **timeouts: float) -> Future[DescribeClusterResult]:
        """Describe the cluster."""
        timeout = _seconds(timeouts)

        def describe() -> DescribeClusterResult:
            cluster = self._queries.metadata(None, timeout)
            nodes = _nodes(cluster)
            return DescribeClusterResult(
                nodes.get(cluster.controller_id), list(nodes.values()), cluster.cluster_id
            )

        return self._submit(describe)

    # --- records and offsets -----------------------------------------------------------------

    def delete_records(
        self, topic_partition_offsets: Sequence[TopicPartition], **timeouts: float
    ) -> dict[TopicPartition, Future[DeletedRecords]]:
        """Delete the records before the offsets; a future by partition."""
        admin = self._within(timeouts)

        def delete(one: TopicPartition) -> DeletedRecords:
            found = admin.delete_records({ours(one): one.offset})
            return DeletedRecords(found[ours(one)].low_watermark)

        return self._each({one: one for one in topic_partition_offsets}, delete)

    def list_offsets(
        self,
        topic_partition_offsets: Mapping[TopicPartition, OffsetSpec],
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        **timeouts: float,
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
        """Look offsets up; a future by partition."""
        admin = self._within(timeouts)

        def look_up(item: tuple[TopicPartition, OffsetSpec]) -> ListOffsetsResultInfo:
            wanted = ours(item[0])
            found = admin.list_partition_offsets(
                {wanted: item[1].timestamp}, isolation_level.value
            )[wanted]
            return ListOffsetsResultInfo(found.offset, found.timestamp, found.leader_epoch)

        return self._each({one[0]: one for one in topic_partition_offsets.items()}, look_up)

    # --- configurations ----------------------------------------------------------------------

    def describe_configs(
        self, resources: Sequence[ConfigResource], **timeouts: float
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]:
        """Describe configurations; a future of entries by name, by resource."""
        admin = self._within(timeouts)

        def describe(resource: ConfigResource) -> dict[str, ConfigEntry]:
            found = admin.describe_configs(
                [_resource(resource, None)], include_synonyms=True, config_filter="all"
            )
            entries = next(iter(next(iter(found.values())).values()))
            return {name: _entry(name, entry) for name, entry in entries.items()}

        return self._each({one: one for one in _checked(resources, ConfigResource)}, describe)

    def alter_configs(
        self, resources: Sequence[ConfigResource], validate_only: bool = False, **timeouts: float
    ) -> dict[ConfigResource, Future[None]]:
        """Replace configurations: entries that are not given are reset; a future by resource."""
        admin = self._within(timeouts)

        def alter(resource: ConfigResource) -> None:
            if not resource.set_config_dict:
                admin.reset_configs([_resource(resource, None)], validate_only)
                return
            made = _resource(resource, resource.set_config_dict)
            _raise_shown(admin.alter_configs([made], validate_only, False, False))

        return self._each({one: one for one in _checked(resources, ConfigResource)}, alter)

    def incremental_alter_configs(
        self, resources: Sequence[ConfigResource], validate_only: bool = False, **timeouts: float
    ) -> dict[ConfigResource, Future[None]]:
        """Change single entries; a future by resource."""
        admin = self._within(timeouts)

        def alter(resource: ConfigResource) -> None:
            changes = {}
            for entry in resource.incremental_configs:
                if entry.incremental_operation is None:
                    raise failure(INVALID_ARG, f"{entry.name} has no incremental_operation")
                changes[entry.name] = (entry.incremental_operation.name.lower(), entry.value)
            made = _resource(resource, changes)
            _raise_shown(admin.alter_configs([made], validate_only, False, True))

        return self._each({one: one for one in _checked(resources, ConfigResource)}, alter)

    # --- groups ------------------------------------------------------------------------------

    def list_consumer_groups(
        self,
        states: Collection[ConsumerGroupState] = (),
        types: Collection[ConsumerGroupType] = (),
        **timeouts: float,
    ) -> Future[ListConsumerGroupsResult]:
        """List groups, of certain states and types if given."""
        admin = self._within(timeouts)

        def list_groups() -> ListConsumerGroupsResult:
            listed = [
                ConsumerGroupListing(
                    one.group_id,
                    not one.protocol_type,
                    ConsumerGroupState.of(one.group_state),
                    _group_type(one.group_type),
                )
                for one in admin.list_groups()
            ]
            return ListConsumerGroupsResult(
                [
                    one
                    for one in listed
                    if (not states or one.state in states) and (not types or one.type in types)
                ]
            )

        return self._submit(list_groups)

    def describe_consumer_groups(
        self, group_ids: Sequence[str], **timeouts: float
    ) -> dict[str, Future[ConsumerGroupDescription]]:
        """Describe groups; a future by id."""
        admin = self._within(timeouts)

        def describe(group_id: str) -> ConsumerGroupDescription:
            outcome = admin._describe_groups([group_id], None, False)[group_id]
            if outcome.error is not None:
                raise outcome.error
            found = admin.describe_groups([group_id])[group_id]
            members = [
                MemberDescription(
                    one.member_id,
                    one.client_id,
                    one.client_host,
                    MemberAssignment(_assigned(one)),
                    one.group_instance_id,
                )
                for one in found.members
            ]
            state = ConsumerGroupState.of(found.group_state)
            return ConsumerGroupDescription(group_id, members, found.protocol_data, state)

        return self._each({one: one for one in _checked(group_ids, str)}, describe)

    def delete_consumer_groups(
        self, group_ids: Sequence[str], **timeouts: float
    ) -> dict[str, Future[None]]:
        """Delete groups without members; a future by id."""
        admin = self._within(timeouts)

        def delete(group_id: str) -> None:
            for _, error in admin.delete_consumer_groups([group_id]):
                _raise(error)

        return self._each({one: one for one in _checked(group_ids, str)}, delete)

    def list_consumer_group_offsets(
        self,
        list_consumer_group_offsets_request: Sequence[ConsumerGroupTopicPartitions],
        **timeouts: float,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """The committed offsets of groups; a future by id."""
        admin = self._within(timeouts)

        def look_up(group: ConsumerGroupTopicPartitions) -> ConsumerGroupTopicPartitions:
            wanted = group.topic_partitions
            partitions = None if wanted is None else [ours(one) for one in wanted]
            found = admin.list_group_offsets({group.group_id: partitions})[group.group_id]
            return ConsumerGroupTopicPartitions(
                group.group_id,
                [
                    theirs(one, it.offset if it.offset >= 0 else OFFSET_INVALID, it.metadata)
                    for one, it in found.items()
                ],
            )

        groups = list_consumer_group_offsets_request
        return self._each({group.group_id: group for group in groups}, look_up)

    def alter_consumer_group_offsets(
        self,
        alter_consumer_group_offsets_request: Sequence[ConsumerGroupTopicPartitions],
        **timeouts: float,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Commit offsets for groups without members; a future by id."""
        admin = self._within(timeouts)

        def alter(group: ConsumerGroupTopicPartitions) -> ConsumerGroupTopicPartitions:
            wanted = {
                ours(one): OffsetAndMetadata(one.offset, one.metadata or "")
                for one in group.topic_partitions or ()
            }
            outcome = admin.alter_group_offsets(group.group_id, wanted)
            partitions = []
            for one, error in outcome.items():
                failed = None if error is NoError else KafkaError(error.code)
                partitions.append(theirs(one, wanted[one].offset, error=failed))
            return ConsumerGroupTopicPartitions(group.group_id, partitions)

        groups = alter_consumer_group_offsets_request
        return self._each({group.group_id: group for group in groups}, alter)

    # --- the rest ----------------------------------------------------------------------------

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Not possible: SASL is not supported yet."""
        del username, password
        raise failure(NOT_IMPLEMENTED, "SASL is not supported yet")

    def poll(self, timeout: float = -1) -> int:
        """Nothing waits for this: calls make progress by themselves."""
        del timeout
        return 0

    def close(self) -> None:
        """End; calls that are under way fail."""
        self._queries.close()
        self._threads.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _within(self, timeouts: Mapping[str, float]) -> KafkaAdminClient:
        """The admin client, whose calls end by `request_timeout` or `operation_timeout`."""
        seconds = _seconds(timeouts)
        if seconds < 0:
            return self._admin
        # A second handle on the same connections, with a deadline of its own.
        bounded = KafkaAdminClient.__new__(KafkaAdminClient)
        vars(bounded).update(vars(self._admin), _requests=self._admin._requests.within(seconds))
        return bounded

    def _each(
        self, items: Mapping[Any, Item], call: Callable[[Item], Result]
    ) -> dict[Any, Future[Result]]:
        return {
            key: self._submit(lambda item=item: call(item))  # type: ignore[misc]
            for key, item in items.items()
        }

    def _submit(self, call: Callable[[], Result]) -> Future[Result]:
        def run() -> Result:
            try:
                return call()
            except ClientError as error:
                raise exception(error) from error

        return self._threads.submit(run)


def _checked(items: Iterable[Any], kind: type[Item]) -> list[Item]:
    if isinstance(items, str):
        raise TypeError(f"expected a list of {kind.__name__}, not a str")
    checked = list(items)
    for item in checked:
        if not isinstance(item, kind):
            raise TypeError(f"expected {kind.__name__}, not {type(item).__name__}")
    return checked


def _seconds(timeouts: Mapping[str, float]) -> float:
    """The timeout of a call; negative without one."""
    unknown = set(timeouts) - {"request_timeout", "operation_timeout"}
    if unknown:
        raise TypeError(f"unexpected keyword argument {sorted(unknown)[0]!r}")
    return timeouts.get("request_timeout", timeouts.get("operation_timeout", -1))


def _nodes(cluster: ClusterMetadata) -> dict[int, Node]:
    return {one.id: Node(one.id, one.host, one.port) for one in cluster.brokers.values()}


def _resource(resource: ConfigResource, configs: Mapping[str, Any] | None) -> _Resource:
    return _Resource(resource.restype.name, resource.name, configs)


def _entry(name: str, entry: Any) -> ConfigEntry:
    return ConfigEntry(
        name,
        entry.value,
        ConfigSource.__members__.get(entry.config_source, ConfigSource.UNKNOWN_CONFIG),
        is_read_only=bool(entry.read_only),
        is_default=entry.config_source == ConfigSource.DEFAULT_CONFIG.name,
        is_sensitive=bool(entry.is_sensitive),
        synonyms={
            one.name: ConfigEntry(one.name, one.value, is_synonym=True)
            for one in entry.get("synonyms") or ()
        },
    )


def _raise_shown(shown: Mapping[str, Mapping[str, str]]) -> None:
    """Raise the error in what `alter_configs` shows."""
    for by_name in shown.values():
        for name, outcome in by_name.items():
            if outcome != "OK":
                raise failure(KafkaError.INVALID_CONFIG, f"{name}: {outcome}")  # type: ignore[attr-defined]


def _raise(error: type[ClientError]) -> None:
    if error is not NoError and issubclass(error, BrokerResponseError):
        raise KafkaException(KafkaError(error.code))


def _group_type(name: str | None) -> ConsumerGroupType:
    return ConsumerGroupType.__members__.get((name or "").upper(), ConsumerGroupType.UNKNOWN)


def _assigned(member: Any) -> list[TopicPartition]:
    assignment = member.member_assignment
    if not assignment:
        return []
    return [
        TopicPartition(one.topic, number)
        for one in assignment.assigned_partitions
        for number in one.partitions
    ]
