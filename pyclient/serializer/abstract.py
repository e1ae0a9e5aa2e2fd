"""kafka-python's module of the serializers' interfaces."""

from pyclient.serialization import Deserializer, Serializer

__all__ = [
    "Deserializer",
    "Serializer",
]
