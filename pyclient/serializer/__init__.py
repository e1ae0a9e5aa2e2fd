"""kafka-python's module of serializers."""

from pyclient.serialization import (
    DefaultSerializer,
    Deserializer,
    DeserializeWrapper,
    JsonSerializer,
    Serializer,
    SerializeWrapper,
)

__all__ = [
    "DefaultSerializer",
    "DeserializeWrapper",
    "Deserializer",
    "JsonSerializer",
    "SerializeWrapper",
    "Serializer",
]
