"""What is inside a transaction's control records, each behind an int16 of its version."""

from pyclient.protocol.primitives import INT16, INT32
from pyclient.protocol.schema import Message, field


class ControlRecordTypeSchema(Message, versions="0", flexible="none"):
    """The key of a control record: its type."""

    type: int = field(INT16)  # 0 abort, 1 commit


class EndTxnMarker(Message, versions="0", flexible="none"):
    """The value of a commit or abort marker."""

    coordinator_epoch: int = field(INT32)
