"""The authorized operations in responses: a bit for each operation of Kafka's ACLs.

Without an authorizer every operation is allowed, as in Apache Kafka. Only constants.
"""

from typing import Final

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = (1 << number for number in range(3, 9))
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = (
    1 << number for number in range(9, 13)
)
_CONFIGURE: Final = _DESCRIBE_CONFIGS | _ALTER_CONFIGS

TOPIC_OPERATIONS: Final = _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _CONFIGURE
GROUP_OPERATIONS: Final = _READ | _DELETE | _DESCRIBE | _CONFIGURE
CLUSTER_OPERATIONS: Final = (
    _CREATE | _ALTER | _DESCRIBE | _CLUSTER_ACTION | _CONFIGURE | _IDEMPOTENT_WRITE
)
NOT_ASKED_FOR: Final = -(1 << 31)
