"""kafka-python's module of serializers made of functions."""

from pyclient.serialization import DeserializeWrapper, SerializeWrapper

__all__ = [
    "DeserializeWrapper",
    "SerializeWrapper",
]
