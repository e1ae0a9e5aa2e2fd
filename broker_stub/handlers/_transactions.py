"""The error for transactional ids, as long as there is no transaction coordinator."""

from pyclient.error_codes import BrokerResponseError, TransactionalIdAuthorizationError


def no_transactions() -> BrokerResponseError:
    """The error for a transactional id.

    Clients give up only on an authorization error from FindCoordinator: librdkafka retries all
    others forever, even UNSUPPORTED_VERSION.
    """
    return TransactionalIdAuthorizationError(
        "This broker has no transactions: configure the producer without a transactional id."
    )
