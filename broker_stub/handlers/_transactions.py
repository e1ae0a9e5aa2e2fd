"""What the transaction APIs share: the errors that old clients know."""

from pyclient.error_codes import (
    BrokerResponseError,
    InvalidProducerEpochError,
    ProducerFencedError,
)


def known_error(error: BrokerResponseError, *, knows_fenced: bool) -> BrokerResponseError:
    """INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED, for clients that do not know that."""
    if isinstance(error, ProducerFencedError) and not knows_fenced:
        return InvalidProducerEpochError(str(error))
    return error
