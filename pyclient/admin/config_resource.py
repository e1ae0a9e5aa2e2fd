"""kafka-python 2's module of `ConfigResource`."""

from pyclient.admin.config_types import ConfigResource, ConfigResourceType

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
]
