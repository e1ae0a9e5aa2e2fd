"""The record that a consumer returns, and how it survives pickling from one twin to the other."""

from pyclient import _twin

ConsumerRecord = _twin.ConsumerRecord


def restore_record(*fields: object) -> ConsumerRecord:
    """Unpickle a record into whichever twin is in use here."""
    return _twin.ConsumerRecord._make(fields)
