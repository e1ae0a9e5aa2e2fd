"""Who the controllers are, as the metadata log of Apache Kafka tells it. Pure functions.

What they need is imported when there is such a log: our own names no controllers.
"""

from __future__ import annotations

import os
import struct
from typing import Final

from pyclient.errors import KafkaStorageError
from pyclient.records.batch import RecordBatch

QUORUM_STATE: Final = "quorum-state"
_VERSION: Final = struct.Struct(">h")


def voters_in(batch: RecordBatch) -> frozenset[int] | None:
    """The voters that a control batch names; None where it is not about them."""
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
    """The voters in `quorum-state`; none where it names none, as newer ones do.

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
