"""`partition.metadata`: the id of the topic that a partition folder belongs to. No state."""

import base64
import binascii
import os
from typing import Final

from broker_stub.log.checkpoints import write_atomically
from pyclient.errors import KafkaStorageError

FILE_NAME: Final = "partition.metadata"
_VERSION: Final = "0"


def write_partition_metadata(folder: str, topic_id: bytes) -> None:
    """Write the file of a new folder."""
    text = base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
    content = f"version: {_VERSION}\ntopic_id: {text}"
    write_atomically(os.path.join(folder, FILE_NAME), content, sync=None)


def read_partition_metadata(folder: str) -> bytes | None:
    """The topic id; None when the folder has no such file.

    Raises:
        KafkaStorageError: the file is damaged or of another version.
    """
    path = os.path.join(folder, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    fields = dict(line.partition(": ")[::2] for line in lines)
    try:
        topic_id = base64.urlsafe_b64decode(fields["topic_id"] + "==")
    except (KeyError, binascii.Error):
        topic_id = b""
    if fields.get("version") != _VERSION or len(topic_id) != 16:
        raise KafkaStorageError(f"{path} is damaged or of another version: {lines}")
    return topic_id
