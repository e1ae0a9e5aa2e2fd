"""The quorum of controllers: our own of one node, and the voters in a log of Apache Kafka.

Imports for the latter are made on first use, since our own log names no voters.
"""

import os
import struct
from typing import Final, NamedTuple

from pyclient.errors import KafkaStorageError
from pyclient.records.batch import RecordBatch

QUORUM_STATE: Final = "quorum-state"
_VERSION: Final = struct.Struct(">h")


class QuorumInfo(NamedTuple):
    """A quorum of one: its only voter is the leader and has the whole log."""

    leader_id: int
    leader_epoch: int
    end_offset: int


def voters_in(batch: RecordBatch) -> frozenset[int] | None:
    """The voters that a control batch names; None for other control batches."""
    from pyclient.protocol.messages.quorum_records import LeaderChangeMessage, VotersRecord
    from pyclient.records.control import ControlRecordType, control_record_type

    kind = control_record_type(batch)
    if kind is ControlRecordType.LEADER_CHANGE:
        declared: type[LeaderChangeMessage | VotersRecord] = LeaderChangeMessage
    elif kind is ControlRecordType.KRAFT_VOTERS:
        declared = VotersRecord
    else:
        return None
    value = batch.decode()[0].value or b""
    (version,) = _VERSION.unpack_from(value)
    return frozenset(voter.voter_id for voter in declared.decode(value, version).voters)


def voters_of_state(folder: str) -> frozenset[int]:
    """The voters in `quorum-state`; newer files name none.

    Raises:
        KafkaStorageError: the file is damaged.
    """
    path = os.path.join(folder, QUORUM_STATE)
    try:
        with open(path, encoding="utf-8") as file:
            import json

            voters = json.load(file).get("currentVoters") or ()
            return frozenset(int(voter["voterId"]) for voter in voters)
    except FileNotFoundError:
        return frozenset()
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise KafkaStorageError(f"{path} is damaged: {error}") from error
