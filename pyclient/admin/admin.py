"""`KafkaAdminClient`: manage a cluster, with kafka-python's arguments and results."""

import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Final, Never, NoReturn, Self, Unpack

from pyclient.admin.acls import AclCalls
from pyclient.admin.cluster import ClusterCalls
from pyclient.admin.configs import ConfigCalls
from pyclient.admin.features import FeatureCalls
from pyclient.admin.group_offsets import GroupOffsetCalls
from pyclient.admin.groups import GroupCalls
from pyclient.admin.partitions import PartitionCalls
from pyclient.admin.quotas import QuotaCalls
from pyclient.admin.records import RecordCalls
from pyclient.admin.replicas import ReplicaCalls
from pyclient.admin.sending.requests import AdminRequests
from pyclient.admin.topics import TopicCalls
from pyclient.admin.transactions import TransactionCalls
from pyclient.admin.users import UserCalls
from pyclient.config import admin as admin_config
from pyclient.config.common import default_config
from pyclient.net.engine import Engine
from pyclient.net.pickling import not_picklable
from pyclient.net.refusals import refuse_positional

if TYPE_CHECKING:
    from pyclient.config.options import AdminOptions

_CLOSE_TIMEOUT_MS: Final = 5_000
_client_ids = itertools.count(1)


class KafkaAdminClient(
    TopicCalls,
    PartitionCalls,
    ReplicaCalls,
    RecordCalls,
    ConfigCalls,
    ClusterCalls,
    FeatureCalls,
    GroupCalls,
    GroupOffsetCalls,
    AclCalls,
    UserCalls,
    QuotaCalls,
    TransactionCalls,
):
    """Manages a cluster: topics, groups, configurations, users and more.

    Any number of threads may share one.

        with KafkaAdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=6, replication_factor=1)])

    Each call goes to the broker that must serve it, is retried while that may help, and ends by its
    timeout. A change with an unknown outcome is never reported as done: an attempt without a
    response is retried, and an error of the retry, such as `TopicExistsError`, mentions that.

    The options are kafka-python's and Java's. `pyclient.config.options.AdminOptions` lists them
    with their types, docs/configuration.md also with their defaults.

    Attributes:
        DEFAULT_CONFIG: the options and their defaults.
        config: the options in use, by either spelling of their names.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = default_config(admin_config.DEFINITION)

    def __init__(
        self, *refused: Never, environment: Any = None, **options: "Unpack[AdminOptions]"
    ) -> None:
        """Connect to the cluster.

        Args:
            refused: there are no positional arguments.
            environment: an `Environment` with another clock and network, for tests and simulation.
            options: as in `request_timeout_ms=20_000`.

        Raises:
            KafkaConfigurationError: an option is unknown, wrong, or contradicts another.
            NoBrokersAvailable: no broker answered within `bootstrap_timeout_ms`.
        """
        refuse_positional(self, refused)
        config = admin_config.parse(options)
        client_id = config["client.id"] or f"pyclient-admin-{next(_client_ids)}"
        self.config = config.derive({"client.id": client_id})
        self._engine = Engine(
            self.config,
            client_id=client_id,
            allow_auto_create_topics=False,
            environment=environment,
        )
        self._requests = AdminRequests(self._engine, self.config)
        self._engine.start()
        if self.config["api.version"] is None:
            try:
                self._engine.bootstrap(self.config["bootstrap.timeout.ms"])
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the client. It may be called again."""
        self._engine.close(_CLOSE_TIMEOUT_MS)

    def __reduce__(self) -> NoReturn:
        raise not_picklable(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
