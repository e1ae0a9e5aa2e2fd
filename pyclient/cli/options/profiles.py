"""Named clusters in `pyclient.toml`.

default = "dev"

[profiles.dev]
bootstrap.servers = "localhost:9092"

[profiles.production]
config-file = "production.properties"
security.protocol = "SSL"
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyclient.errors import KafkaConfigurationError

CONFIG_FILE = "config-file"
"""The key of a profile that names a properties file; a relative path starts at the profiles."""


def profiles_path() -> Path:
    """`$PYCLIENT_CONFIG`, or `pyclient.toml` in XDG's folder of configurations."""
    named = os.environ.get("PYCLIENT_CONFIG")
    if named:
        return Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "pyclient.toml"


def read_profile(name: str | None) -> dict[str, str]:
    """The options of a profile; of the default one without a name, if there is one.

    Raises:
        KafkaConfigurationError: the file or the profile does not exist, or is not valid.
    """
    path = profiles_path()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if name is None:
            return {}
        raise KafkaConfigurationError(f"no profile {name!r}: {path} does not exist") from None
    except OSError as error:
        raise KafkaConfigurationError(f"can't read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KafkaConfigurationError(f"{path} is not valid TOML: {error}") from error
    profiles = document.get("profiles", {})
    chosen = name if name is not None else document.get("default")
    if chosen is None:
        return {}
    profile = profiles.get(chosen) if isinstance(profiles, dict) else None
    if not isinstance(profile, dict):
        known = ", ".join(sorted(profiles)) or "none"
        raise KafkaConfigurationError(f"no profile {chosen!r} in {path}; it has {known}")
    options = dict(_flattened(profile))
    if CONFIG_FILE in options:
        options[CONFIG_FILE] = str(path.parent / Path(options[CONFIG_FILE]).expanduser())
    return options


def _flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """`bootstrap.servers = ...` is nested tables to TOML, and one name to Kafka."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield prefix + name, ",".join(str(item) for item in value)
        else:
            yield prefix + name, str(value).lower() if isinstance(value, bool) else str(value)
