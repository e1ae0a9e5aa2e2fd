"""`partition.metadata`: the id of the topic that a partition's directory belongs to. No state.

Written by the first append, synced by the log's first flush.
"""

import os
import re
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.files.checkpoint_file import write_atomically
from pyclient.errors import KafkaStorageError
from pyclient.types import format_uuid, parse_uuid

_FILE_NAME: Final = "partition.metadata"
_VERSION: Final = "0"
_WHOLE: Final = rb"version: (\d+)\ntopic_id: ([\w-]{22})\n?"
_OTHER_VERSION: Final = rb"version: (?!0\n)\d+\n"


def metadata_path(folder: str) -> str:
    """The path of the file in a partition's directory."""
    return os.path.join(folder, _FILE_NAME)


def write_partition_metadata(folder: str, topic_id: bytes) -> None:
    """Write the file; it is not synced."""
    content = f"version: {_VERSION}\ntopic_id: {format_uuid(topic_id)}"
    write_atomically(metadata_path(folder), content, sync=None)


def read_partition_metadata(folder: str) -> bytes | None:
    """The topic id; None if the file is missing, or torn by a power failure.

    A torn file belongs to a log that was never flushed, so no synced record is affected.

    Raises:
        KafkaStorageError: the file is of another version.
    """
    path = metadata_path(folder)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    if re.match(_OTHER_VERSION, content):
        raise KafkaStorageError(f"{path} is of another version than {_VERSION}: {content!r}")
    whole = re.fullmatch(_WHOLE, content)
    if whole is None:
        diagnostics.warn("%s is torn: %r", path, content)
        return None
    return parse_uuid(whole[2].decode())
