"""kafka-python 2's module of `NewTopic`."""

from pyclient.admin.types.new_topic import NewTopic

__all__ = [
    "NewTopic",
]
