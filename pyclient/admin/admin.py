"""`KafkaAdminClient`: manage topics, with kafka-python's arguments and results."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from pyclient.admin.configs import ConfigFilter, ConfigResource, describe_configs
from pyclient.admin.partitions import Growth, create_partitions
from pyclient.admin.requests import AdminRequests
from pyclient.admin.results import Result, as_dict, error_of
from pyclient.admin.topics import NewTopics, create_topics, delete_topics, describe_topics
from pyclient.config import admin as admin_config
from pyclient.errors import for_code
from pyclient.net.engine import Engine
from pyclient.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from pyclient.net.environment import Environment

_CLOSE_TIMEOUT_MS: Final = 5_000
_client_ids = itertools.count(1)


class KafkaAdminClient:
    """Manages topics and reads configurations. Any number of threads may share one.

        with KafkaAdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=6, replication_factor=1)])

    The options are kafka-python's and Java's: see docs/configuration.md.
    """

    def __init__(self, *, environment: Environment | None = None, **options: Any) -> None:
        """Connect to the cluster.

        Args:
            environment: another world for the client to live in, for tests and simulation.
            options: as in `request_timeout_ms=20_000`.

        Raises:
            KafkaConfigurationError: an option is unknown, wrong, or contradicts another.
            NoBrokersAvailable: no broker answered within `bootstrap_timeout_ms`.
        """
        self.config = admin_config.parse(options)
        self._engine = Engine(
            self.config,
            client_id=self.config["client.id"] or f"pyclient-admin-{next(_client_ids)}",
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

    def create_topics(
        self,
        new_topics: NewTopics,
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> dict[str, Any]:
        """Create topics.

        Args:
            new_topics: names, `NewTopic`s, or a dict of options by name: `num_partitions`,
                `replication_factor`, `assignments`, `configs`.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.
            validate_only: only check whether they could be created.
            raise_errors: raise the first error; otherwise they are in the result.

        Raises:
            KafkaError: a topic could not be created, as in `TopicExistsError`; or none of them,
                as in `KafkaTimeoutError`.
        """
        results = create_topics(self._requests, new_topics, timeout_ms, validate_only)
        _raise_first_error(results, raise_errors)
        return {"topics": [as_dict(one) for one in results.values()]}

    def delete_topics(
        self, topics: Iterable[str], timeout_ms: float | None = None, raise_errors: bool = True
    ) -> dict[str, Any]:
        """Delete topics and all their records; see `create_topics` for timeout and errors.

        Raises:
            KafkaError: a topic could not be deleted, as in `UnknownTopicOrPartitionError`.
        """
        results = delete_topics(self._requests, topics, timeout_ms)
        _raise_first_error(results, raise_errors)
        return {"topics": [as_dict(one) for one in results.values()]}

    def list_topics(self) -> list[str]:
        """The names of all topics."""
        return [topic["name"] for topic in self.describe_topics()]

    def describe_topics(self, topics: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Topics with their partitions, leaders and replicas; by default all of them.

        A topic that does not exist has an `error_code` in its description.
        """
        return describe_topics(self._requests, topics)

    def create_partitions(
        self,
        topic_partitions: Growth,
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> dict[str, Any]:
        """Give topics more partitions; see `create_topics` for the other arguments.

        Args:
            topic_partitions: by topic the number of partitions afterwards, a `NewPartitions`, or
                a dict of `count` and `assignments`.
            timeout_ms: how long the call may take.
            validate_only: only check whether it could be done.
            raise_errors: raise the first error; otherwise they are in the result.

        Raises:
            KafkaError: a topic could not grow, as in `InvalidPartitionsError`.
        """
        results = create_partitions(self._requests, topic_partitions, timeout_ms, validate_only)
        _raise_first_error(results, raise_errors)
        return {"results": [as_dict(one) for one in results.values()]}

    def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        config_filter: str | ConfigFilter = "modified",
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """Configuration entries, by kind of resource, name of the resource and key.

        Args:
            config_resources: what to describe.
            include_synonyms: tell the other places too that set an entry.
            config_filter: `modified` (default), `dynamic`, `static`, `default` or `all`.

        Raises:
            KafkaError: a resource could not be described.
        """
        return describe_configs(self._requests, config_resources, include_synonyms, config_filter)

    def describe_cluster(self) -> dict[str, Any]:
        """The cluster's id, controller and brokers."""
        response = self._requests.ask(DescribeClusterRequest(), self._requests.deadline(None))
        assert isinstance(response, DescribeClusterResponse)
        if response.error_code:
            raise for_code(response.error_code)(response.error_message)
        described = as_dict(response)
        return {key: described[key] for key in ("cluster_id", "controller_id", "brokers")}

    def close(self) -> None:
        """End the client. Twice does no harm."""
        self._engine.close(_CLOSE_TIMEOUT_MS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _raise_first_error(results: Mapping[str, Result], raise_errors: bool) -> None:
    if raise_errors:
        for name, result in results.items():
            error = error_of(f"topic {name!r}", result)
            if error is not None:
                raise error
