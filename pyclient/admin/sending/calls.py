"""What the admin client's calls share."""

from pyclient.admin.sending.requests import AdminRequests


class AdminCalls:
    """The base class of each noun's calls; `KafkaAdminClient` inherits all of them."""

    _requests: AdminRequests
