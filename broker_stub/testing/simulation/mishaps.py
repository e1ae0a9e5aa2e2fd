"""An interceptor that makes the broker respond with transient errors.

Each error is one that Apache Kafka returns for that API during changes, at the time when Kafka
would return it: errors that rule out any effect come before the request is handled, errors that
leave it open may also come after. The scheduler's thread.
"""

from collections.abc import Mapping
from typing import Final

from broker_stub.dispatch import Interceptor, Intervention, refusal
from broker_stub.request import RequestContext
from broker_stub.testing.simulation.chance import Chance
from broker_stub.testing.simulation.trace import Trace
from broker_stub.testing.simulation.weather import Weather
from pyclient.error_codes import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaStorageError,
    NotControllerError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    RequestTimedOutError,
)
from pyclient.protocol.schema import Message

_Errors = tuple[type[BrokerResponseError], ...]

_CONTROLLER: Final[_Errors] = (NotControllerError,)
_COORDINATOR: Final[_Errors] = (NotCoordinatorError, CoordinatorNotAvailableError)
_LOADING: Final[_Errors] = (*_COORDINATOR, CoordinatorLoadInProgressError)

# By API key. None of these has changed anything.
_BEFORE: Final[Mapping[int, _Errors]] = {
    0: (NotLeaderOrFollowerError, NotEnoughReplicasError, KafkaStorageError),  # Produce
    2: (NotLeaderOrFollowerError, OffsetNotAvailableError),  # ListOffsets
    8: _LOADING,  # OffsetCommit
    9: _LOADING,  # OffsetFetch
    10: (CoordinatorNotAvailableError,),  # FindCoordinator
    11: _LOADING,  # JoinGroup
    12: _COORDINATOR,  # Heartbeat
    13: _LOADING,  # LeaveGroup
    14: _LOADING,  # SyncGroup
    15: _LOADING,  # DescribeGroups
    16: (CoordinatorLoadInProgressError, CoordinatorNotAvailableError),  # ListGroups
    19: _CONTROLLER,  # CreateTopics
    20: _CONTROLLER,  # DeleteTopics
    22: _LOADING,  # InitProducerId
    33: _CONTROLLER,  # AlterConfigs
    37: _CONTROLLER,  # CreatePartitions
    42: _LOADING,  # DeleteGroups
    44: _CONTROLLER,  # IncrementalAlterConfigs
    47: _LOADING,  # OffsetDelete
}
# These leave open whether it was carried out.
_AFTER: Final[Mapping[int, _Errors]] = {
    0: (RequestTimedOutError, NotEnoughReplicasAfterAppendError),
    8: (RequestTimedOutError,),
    19: (RequestTimedOutError,),
    20: (RequestTimedOutError,),
    33: (RequestTimedOutError,),
    37: (RequestTimedOutError,),
    44: (RequestTimedOutError,),
}


class Mishaps(Interceptor):
    """Notes every request, and answers some of them wrongly."""

    def __init__(self, who: str, chance: Chance, trace: Trace, weather: Weather) -> None:
        self._who = who
        self._chance = chance
        self._trace = trace
        self._weather = weather

    def on_request(self, request: Message, context: RequestContext) -> Intervention | None:
        """Note it, and perhaps refuse it before anything happens."""
        self._note(request, context, "comes")
        errors = _BEFORE.get(context.api_key)
        if errors is None or not self._chance.happens(self._weather.now.error / 2):
            return None
        return self._answer(request, context, self._chance.choice(errors)())

    def on_response(
        self, request: Message, response: Message | None, context: RequestContext
    ) -> Intervention | None:
        """It is done; perhaps say something else, or hang up."""
        if not self._chance.happens(self._weather.now.error / 2):
            return None
        errors = _AFTER.get(context.api_key)
        if errors is None or response is None or self._chance.happens(0.5):
            self._note(request, context, "is done and gets no answer")
            return Intervention(close=True)
        return self._answer(request, context, self._chance.choice(errors)())

    def _answer(
        self, request: Message, context: RequestContext, error: BrokerResponseError
    ) -> Intervention:
        response = refusal(request, error)
        if response is None:  # acks=0: the only way left to tell
            self._note(request, context, "gets no answer")
            return Intervention(close=True)
        self._note(request, context, f"is answered {type(error).__name__}")
        return Intervention(response=response)

    def _note(self, request: Message, context: RequestContext, what: str) -> None:
        self._trace.note(
            self._who,
            "%s v%d #%d of %s %s",
            type(request).__name__,
            context.api_version,
            context.correlation_id,
            context.client_id,
            what,
        )
