"""Builds the image at start, and checks that the directory belongs to a single node.

Directories of Apache Kafka are read like our own. A directory of a cluster with several nodes is
refused, because a single node would lose data. Used by the thread that opens the node.
"""

from collections.abc import Collection
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.log_manager import LogManager
from broker_stub.metadata.image import ClusterImage, PartitionImage
from broker_stub.metadata.log import CLUSTER_METADATA, MetadataLog
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.protocol.messages.metadata_records import NoOpRecord

_RESERVED_DIRECTORY_IDS: Final = 100  # not assigned, lost, being moved, and some to come


def load_image(image: ClusterImage, log: MetadataLog) -> None:
    """Apply every record of the log; log the record types that are ignored.

    Raises:
        CorruptRecordError: a record refers to something that does not exist.
        KafkaStorageError: a part of the log is missing.
    """
    if not log.is_empty:
        # What a killed process wrote may not be on disk yet, and no client may see a change that a
        # power failure could undo.
        log.sync()
    skipped: set[str] = set()
    for offset, record in log.replay():
        if not image.knows(record):
            skipped.add(type(record).__name__)
            continue
        try:
            image.apply(record, offset)
        except KeyError as error:
            raise CorruptRecordError(
                f"the metadata log, offset {offset}: {type(record).__name__} refers to something"
                " that does not exist"
            ) from error
    skipped.discard(NoOpRecord.__name__)  # which says nothing anywhere
    if skipped:
        diagnostics.warn("skipping metadata records of these types: %s", ", ".join(sorted(skipped)))


def check_single_node(
    image: ClusterImage, log: MetadataLog, logs: LogManager, node_id: int
) -> None:
    """Refuse a directory that other nodes share, or of which a part is missing.

    Raises:
        KafkaStorageError: other nodes keep the metadata or have replicas, or a part is missing.
    """
    strangers = log.voters - {node_id}
    if strangers:
        raise _shared(f"controllers {_names(log.voters)} keep its metadata")
    directories = set(logs.directory_ids.values())
    for topic in image.topics():
        for partition in topic.partitions.values():
            name = f"{topic.name}-{partition.partition_id}"
            if partition.replicas != (node_id,):
                raise _shared(f"{name} has replicas on brokers {_names(partition.replicas)}")
            is_found = logs.get(topic.name, partition.partition_id) is not None
            if not is_found and not _is_here(partition, directories):
                raise KafkaStorageError(f"{name} is in a log dir that is not among those given")
    if set(image.brokers) - {node_id}:
        raise _shared(f"brokers {_names(image.brokers)} are registered")
    partitions = [f"{key.topic}-{key.partition}" for key in logs.logs()]
    partitions = [name for name in partitions if name != f"{CLUSTER_METADATA}-0"]
    if log.is_empty and partitions:
        raise KafkaStorageError(
            f"there is {partitions[0]}, but no {CLUSTER_METADATA}-0 that describes it: add the"
            " folder that metadata.log.dir named where it was written"
        )


def _shared(reason: str) -> KafkaStorageError:
    return KafkaStorageError(f"only the folder of a single node can be opened: {reason}")


def _names(nodes: Collection[int]) -> str:
    return ", ".join(map(str, sorted(nodes)))


def _is_here(partition: PartitionImage, directories: Collection[bytes]) -> bool:
    return all(
        directory in directories or int.from_bytes(directory, "big") < _RESERVED_DIRECTORY_IDS
        for directory in partition.directories
    )
