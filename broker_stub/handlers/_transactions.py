"""What a client with a transactional id is told until there is a transaction coordinator."""

from __future__ import annotations

from pyclient.error_codes import BrokerResponseError, TransactionalIdAuthorizationError


def no_transactions() -> BrokerResponseError:
    """The error for a transactional id.

    Of all that FindCoordinator may answer, clients give up only on a lack of rights: librdkafka
    retries anything else for ever, UNSUPPORTED_VERSION too.
    """
    return TransactionalIdAuthorizationError(
        "This broker has no transactions: configure the producer without a transactional id."
    )
