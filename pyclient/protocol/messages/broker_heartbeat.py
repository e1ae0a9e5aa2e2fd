"""BrokerHeartbeat (API key 63): a registered broker is alive."""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, UUID, Uuid
from pyclient.protocol.schema import Message, array, field


class BrokerHeartbeatRequest(Message, api_key=63, versions="0-2", flexible="0+"):
    """Keep a broker's registration alive, and say what it wants."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    current_metadata_offset: int = field(INT64)
    want_fence: bool = field(BOOL)
    want_shut_down: bool = field(BOOL)
    offline_log_dirs: list[Uuid] = field(array(UUID), versions="1+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = field(
        array(UUID), versions="2+", nullable="2+", default=None, tag=1
    )


class BrokerHeartbeatResponse(Message, api_key=63, versions="0-2", flexible="0+"):
    """What the controller wants of the broker."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    is_caught_up: bool = field(BOOL)
    is_fenced: bool = field(BOOL, default=True)
    should_shut_down: bool = field(BOOL)
