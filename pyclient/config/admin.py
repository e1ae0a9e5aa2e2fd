"""The admin client's options."""

from collections.abc import Mapping

from pyclient.config.common import COMMON_KEYS, COMMON_REFUSED, INT32_MAX
from pyclient.config.definition import Config, ConfigDefinition, ConfigKey, at_least, between
from pyclient.config.metrics import METRICS_REFUSED

DEFINITION = ConfigDefinition(
    "KafkaAdminClient",
    (
        *COMMON_KEYS,
        ConfigKey(
            "default.api.timeout.ms",
            int,
            60_000,
            at_least(0),
            "The timeout of a call that is not given one, retries included.",
        ),
        ConfigKey(
            "retries",
            int,
            INT32_MAX,
            between(0, INT32_MAX),
            "How often a call is retried. Prefer default.api.timeout.ms as the limit.",
        ),
    ),
    (*COMMON_REFUSED, *METRICS_REFUSED),
)


def parse(options: Mapping[str, object]) -> Config:
    """The admin client's configuration.

    Raises:
        KafkaConfigurationError: an option is unknown, refused, or has a value that is not allowed.
    """
    return DEFINITION.parse(options)
