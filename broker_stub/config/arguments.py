"""What `Broker` is given, checked: mistakes are told in words, and where they are made.

Those about the broker itself are KafkaConfigurationErrors, as those about its options. Pure
functions.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.listeners import (
    DEFAULT_HOST,
    LISTENERS,
    PORT_MAX,
    Listener,
    configured_listeners,
)
from broker_stub.metadata.topics import NewTopic, check_new_partitions
from pyclient.clock import Clock, SystemClock
from pyclient.errors import KafkaConfigurationError


def given_config(config: Mapping[str, object] | None) -> BrokerConfig:
    """The options."""
    if not isinstance(config, Mapping | None):
        raise KafkaConfigurationError(
            f"config is a dict of options, as {{'num.partitions': 3}}, not {type(config).__name__}",
            key="config",
            value=config,
        )
    return BrokerConfig(config)


def given_clock(clock: Clock | None) -> Clock:
    """The time; the machine's own by default."""
    if clock is None:
        return SystemClock()
    if isinstance(clock, type) or not (hasattr(clock, "now_ms") and hasattr(clock, "monotonic_ms")):
        raise KafkaConfigurationError(
            f"{clock!r} is no clock: ManualClock() is, or what has now_ms() and monotonic_ms()",
            key="clock",
            value=clock,
        )
    return clock


def given_listeners(config: BrokerConfig, host: str | None, port: int) -> list[Listener]:
    """Where to listen."""
    if not isinstance(host, str | None):
        raise KafkaConfigurationError(
            f"the host is a str, as '127.0.0.1', not {type(host).__name__}", key="host", value=host
        )
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= PORT_MAX:
        raise KafkaConfigurationError(f"{port!r} is no port: 0 to {PORT_MAX} are", key="port")
    if config[LISTENERS] is not None and (host is not None or port):
        raise KafkaConfigurationError(
            f"give either a host and a port, or {LISTENERS}: the latter has both", key=LISTENERS
        )
    return configured_listeners(config, DEFAULT_HOST if host is None else host, port)


def given_log_dirs(config: BrokerConfig, data_dir: str | os.PathLike[str] | None) -> list[str]:
    """The folders that the data is in; none for a temporary one."""
    data_folder = None if data_dir is None else _folder(data_dir)
    for option in ("log.dirs", "log.dir"):
        folders: list[str] | None = config[option]
        if folders is None:
            continue
        if data_folder is not None:
            raise KafkaConfigurationError(
                f"give either a data folder or {option}: they are the same", key=option
            )
        if len(set(folders)) < len(folders):
            raise KafkaConfigurationError(f"{option} has a folder twice", key=option, value=folders)
        return [os.path.abspath(folder) for folder in folders]
    return [] if data_folder is None else [os.path.abspath(data_folder)]


def given_topic(name: str, partitions: int, config: Mapping[str, object] | None) -> NewTopic:
    """A topic to be made.

    Raises:
        TypeError: the name, the number or the options are something else.
        PolicyViolationError: it has more partitions than can be made at once.
    """
    if not isinstance(name, str):
        raise TypeError(f"a topic's name is a str, not {type(name).__name__}")
    try:
        count = operator.index(partitions)
    except TypeError:
        count = None
    if count is None or isinstance(partitions, bool):
        raise TypeError(f"the number of partitions is an int, not {partitions!r}")
    if not isinstance(config, Mapping | None):
        raise TypeError(
            "config is a dict of the topic's options, as {'retention.ms': 1000}, not"
            f" {type(config).__name__}"
        )
    for option in config or {}:
        if not isinstance(option, str):
            raise TypeError(f"{option!r} is no option: they are named by strings")
    check_new_partitions(count)
    configs = {option: _text(value) for option, value in (config or {}).items()}
    return NewTopic(name, partitions=count, configs=configs)


def _folder(data_dir: str | os.PathLike[str]) -> str:
    folder = os.fspath(data_dir) if isinstance(data_dir, os.PathLike) else data_dir
    if not isinstance(folder, str):
        hint = ": options are given as config=" if isinstance(folder, Mapping) else ""
        raise KafkaConfigurationError(
            f"the data folder is a path, a str or a Path, not {type(folder).__name__}{hint}",
            key="data_dir",
            value=data_dir,
        )
    if not folder:  # an unset variable, say: not the folder that the process happens to be in
        raise KafkaConfigurationError("the data folder has no name", key="data_dir")
    return folder


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
