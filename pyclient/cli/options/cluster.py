"""Which cluster a command works on: the options that every command has, and what they mean.

Later ones override earlier ones: the profile, its file, `--config-file`, `--config`,
`--bootstrap-server`. Without any of them, the cluster is `localhost:9092`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pyclient.cli.options.types import KEY_VALUE
from pyclient.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer

DEFAULT_SERVERS: Final = "localhost:9092"
BOOTSTRAP_TIMEOUT_MS: Final = 5_000
_NAMES: Final = ("bootstrap_server", "config", "config_file", "profile", "verbose")

Function = TypeVar("Function", bound=Callable[..., Any])


class Cluster:
    """The cluster of a command, and the clients for it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @property
    def named_servers(self) -> str | None:
        """The bootstrap servers that the user named; None if the user named none."""
        return self._options.get("bootstrap.servers")

    @property
    def servers(self) -> str:
        return self.named_servers or DEFAULT_SERVERS

    def options(self, client: str, **defaults: Any) -> dict[str, Any]:
        """The options of a `producer`, `consumer` or `admin`, with the command's own defaults."""
        from pyclient.cli.options.config_names import options_for

        given = options_for(client, {**self._options, "bootstrap.servers": self.servers})
        own = {name.replace("_", "."): value for name, value in defaults.items()}
        return {"bootstrap.timeout.ms": BOOTSTRAP_TIMEOUT_MS, **own, **given}

    def admin(self, **defaults: Any) -> KafkaAdminClient:
        from pyclient import KafkaAdminClient

        return KafkaAdminClient(**self.options("admin", client_id="pyclient-cli", **defaults))

    def producer(self, **defaults: Any) -> KafkaProducer:
        from pyclient import KafkaProducer

        return KafkaProducer(**self.options("producer", client_id="pyclient-cli", **defaults))

    def consumer(self, **defaults: Any) -> KafkaConsumer:
        from pyclient import KafkaConsumer

        return KafkaConsumer(**self.options("consumer", client_id="pyclient-cli", **defaults))


def cluster_options(function: Function) -> Function:
    """Give a command the cluster's options, and the keyword argument `cluster`."""

    @wraps(function)
    def with_cluster(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in _NAMES}
        return function(*args, cluster=_resolve(given), **kwargs)

    return _with_options(with_cluster)  # type: ignore[return-value]


def root_options(function: Function) -> Function:
    """The same options in front of the command: `pyclient --profile prod topics list`."""

    @wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        click.get_current_context().obj = {name: kwargs.pop(name) for name in _NAMES}
        return function(*args, **kwargs)

    return _with_options(noted)  # type: ignore[return-value]


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS: Final = (
    click.option(
        "-b", "--bootstrap-server", metavar="HOST:PORT,...", envvar="PYCLIENT_BOOTSTRAP_SERVERS",
        help=f"Brokers to connect to first.  [{DEFAULT_SERVERS}]",
    ),
    click.option(
        "-X", "--config", type=KEY_VALUE, multiple=True, metavar="KEY=VALUE",
        help="A client option by Kafka's name, as in linger.ms=5. May be repeated.",
    ),
    click.option(
        "-F", "--config-file", type=click.Path(path_type=Path), metavar="FILE",
        help="Options from a Java properties file or kcat's file.",
    ),
    click.option(
        "--profile", metavar="NAME", envvar="PYCLIENT_PROFILE",
        help="A cluster of ~/.config/pyclient.toml.",
    ),
    click.option("-v", "--verbose", count=True, help="Log to standard error; -vv logs more."),
)  # fmt: skip


def _resolve(given: Mapping[str, Any]) -> Cluster:
    in_front: Mapping[str, Any] = click.get_current_context().find_root().obj or {}
    merged = {name: given[name] or in_front.get(name) for name in _NAMES}
    configs = (*in_front.get("config", ()), *given["config"])
    _set_up_logging(max(given["verbose"], in_front.get("verbose") or 0))
    return resolve_cluster(
        merged["bootstrap_server"], configs, merged["config_file"], merged["profile"]
    )


def resolve_cluster(
    servers: str | None,
    configs: tuple[tuple[str, str], ...],
    config_file: Path | None,
    profile: str | None,
) -> Cluster:
    """The cluster that the options name.

    Raises:
        KafkaConfigurationError: a file cannot be read, or a profile does not exist.
    """
    from pyclient.cli.options.profiles import CONFIG_FILE, read_profile
    from pyclient.config.properties import read_properties

    own = read_profile(profile)
    options: dict[str, str] = {}
    if CONFIG_FILE in own:
        options.update(_servers_spelt(read_properties(Path(own.pop(CONFIG_FILE)))))
    options.update(_servers_spelt(own))
    if config_file is not None:
        if not config_file.exists():
            raise KafkaConfigurationError(f"{config_file} does not exist")
        options.update(_servers_spelt(read_properties(config_file)))
    options.update(_servers_spelt(dict(configs)))
    if servers is not None:
        options["bootstrap.servers"] = servers
    return Cluster(options)


def _servers_spelt(options: Mapping[str, str]) -> dict[str, str]:
    """Kafka's spelling of the servers, which librdkafka's files have by another name."""
    return {
        "bootstrap.servers"
        if name in ("metadata.broker.list", "bootstrap_servers")
        else name: value
        for name, value in options.items()
    }


def _set_up_logging(level: int) -> None:
    import logging

    if not level:
        # The command's own line says what went wrong; these would repeat it.
        for name in ("pyclient", "broker_stub"):
            logging.getLogger(name).addHandler(logging.NullHandler())
        return
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("pyclient", "broker_stub"):
        logging.getLogger(name).setLevel(logging.INFO if level == 1 else logging.DEBUG)
