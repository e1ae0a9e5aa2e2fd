"""kafka-python 2's module of `ConfigResource`."""

from pyclient.admin import ConfigResource, ConfigResourceType

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
]
