"""Data loss: records that a query must read and that Kafka no longer has.

The classes in brackets are the JVM connector's; Spark has its own class for every error of a
Python source, so they are part of the text.
"""

import logging

log = logging.getLogger(__name__)


class DataLossError(RuntimeError):
    """Records that the query must read no longer exist."""


def report_data_loss(error_class: str, what: str, *, fail: bool) -> None:
    """Raise, or warn and let the query continue.

    Args:
        error_class: the JVM connector's name for it, below `KAFKA_DATA_LOSS`.
        what: what happened, without a full stop.
        fail: the option `failOnDataLoss`.
    """
    if fail:
        raise DataLossError(
            f"[KAFKA_DATA_LOSS.{error_class}] {what}. Some data may have been lost: it was aged "
            "out by Kafka, or the topic was deleted before all of it was processed. To continue "
            "without it, set the source option 'failOnDataLoss' to 'false'"
        )
    log.warning("data loss: %s; failOnDataLoss is false, so the query continues", what)
