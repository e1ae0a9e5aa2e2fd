"""Checks the arguments of `Broker(...)` and `Broker.create_topic(...)`. Pure functions.

Mistakes in what a broker is made with raise KafkaConfigurationError, as those in its options do.
"""

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
from broker_stub.metadata.topics import NEW_PARTITIONS_MAX, NewTopic
from pyclient.clock import Clock, SystemClock
from pyclient.errors import KafkaConfigurationError, PolicyViolationError


def given_config(config: Mapping[str, object] | None) -> BrokerConfig:
    if not isinstance(config, Mapping | None):
        raise KafkaConfigurationError(
            f"config must be a dict of options, such as {{'num.partitions': 3}}, not"
            f" {type(config).__name__}",
            key="config",
            value=config,
        )
    return BrokerConfig(config)


def given_clock(clock: Clock | None) -> Clock:
    if clock is None:
        return SystemClock()
    if isinstance(clock, type) or not (hasattr(clock, "now_ms") and hasattr(clock, "monotonic_ms")):
        raise KafkaConfigurationError(
            f"{clock!r} is not a clock: pass ManualClock(), or an object with now_ms() and"
            " monotonic_ms()",
            key="clock",
            value=clock,
        )
    return clock


def given_listeners(config: BrokerConfig, host: str | None, port: int) -> list[Listener]:
    if not isinstance(host, str | None):
        raise KafkaConfigurationError(
            f"the host must be a str, such as '127.0.0.1', not {type(host).__name__}",
            key="host",
            value=host,
        )
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= PORT_MAX:
        raise KafkaConfigurationError(f"the port must be 0 to {PORT_MAX}, not {port!r}", key="port")
    if config[LISTENERS] is not None and (host is not None or port):
        raise KafkaConfigurationError(
            f"pass a host and a port, or {LISTENERS}, but not both", key=LISTENERS
        )
    return configured_listeners(config, DEFAULT_HOST if host is None else host, port)


def given_log_dirs(config: BrokerConfig, data_dir: str | os.PathLike[str] | None) -> list[str]:
    """The data folders; an empty list for a temporary one."""
    data_folder = None if data_dir is None else _folder(data_dir)
    for option in ("log.dirs", "log.dir"):
        folders: list[str] | None = config[option]
        if folders is None:
            continue
        if data_folder is not None:
            raise KafkaConfigurationError(
                f"pass a data folder or {option}, but not both", key=option
            )
        if len(set(folders)) < len(folders):
            raise KafkaConfigurationError(f"{option} has a folder twice", key=option, value=folders)
        return [os.path.abspath(folder) for folder in folders]
    return [] if data_folder is None else [os.path.abspath(data_folder)]


def given_topic(name: str, partitions: int, config: Mapping[str, object] | None) -> NewTopic:
    """A topic to create.

    Raises:
        TypeError: the name, the number or the options have another type.
        PolicyViolationError: there are too many partitions for one request.
    """
    if not isinstance(name, str):
        raise TypeError(f"the topic name must be a str, not {type(name).__name__}")
    try:
        count = operator.index(partitions)
    except TypeError:
        count = None
    if count is None or isinstance(partitions, bool):
        raise TypeError(f"the number of partitions must be an int, not {partitions!r}")
    if not isinstance(config, Mapping | None):
        raise TypeError(
            "config must be a dict of topic options, such as {'retention.ms': 1000}, not"
            f" {type(config).__name__}"
        )
    for option in config or {}:
        if not isinstance(option, str):
            raise TypeError(f"option names must be strings, not {option!r}")
    if count > NEW_PARTITIONS_MAX:
        raise PolicyViolationError(
            f"topic {name!r} can't be created with {count} partitions: at most "
            f"{NEW_PARTITIONS_MAX} can be created at once"
        )
    configs = {option: _text(value) for option, value in (config or {}).items()}
    return NewTopic(name, partitions=count, configs=configs)


def _folder(data_dir: str | os.PathLike[str]) -> str:
    folder = os.fspath(data_dir) if isinstance(data_dir, os.PathLike) else data_dir
    if not isinstance(folder, str):
        hint = ": pass options as config=" if isinstance(folder, Mapping) else ""
        raise KafkaConfigurationError(
            f"the data folder must be a str or a Path, not {type(folder).__name__}{hint}",
            key="data_dir",
            value=data_dir,
        )
    if not folder:  # perhaps an unset variable: do not use the working directory
        raise KafkaConfigurationError("the data folder is an empty string", key="data_dir")
    return folder


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
