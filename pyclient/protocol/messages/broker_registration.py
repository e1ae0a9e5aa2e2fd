"""BrokerRegistration (API key 62): a broker introduces itself to the controller."""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class Listener(Struct):
    """An address that the broker serves on."""

    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)
    security_protocol: int = field(INT16)


class Feature(Struct):
    """The levels of a feature that the broker could run."""

    name: str = field(STRING)
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


class BrokerRegistrationRequest(Message, api_key=62, versions="0-4", flexible="0+"):
    """Register a broker, or register it again after a restart."""

    broker_id: int = field(INT32)
    cluster_id: str = field(STRING)
    incarnation_id: Uuid = field(UUID)
    listeners: list[Listener] = field(array(Listener))
    features: list[Feature] = field(array(Feature))
    rack: str | None = field(STRING, nullable="0+")
    is_migrating_zk_broker: bool = field(BOOL, versions="1+")
    log_dirs: list[Uuid] = field(array(UUID), versions="2+", ignorable=True)
    previous_broker_epoch: int = field(INT64, versions="3+", default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, api_key=62, versions="0-4", flexible="0+"):
    """The epoch the broker got."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    broker_epoch: int = field(INT64, default=-1)
