"""Applies the faults of `broker.faults` to the requests of one node.

The faults that hit a request are chosen when it arrives, and kept in its context until the
response. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from broker_stub.dispatch import Interceptor, Intervention, refusal
from broker_stub.request import RequestContext
from broker_stub.testing.faults import (
    DELAY_MS_MAX,
    Cut,
    Delay,
    Drop,
    Fail,
    Fault,
    Faults,
    Target,
)
from broker_stub.testing.topic_layouts import FETCH, FETCH_WIDE_ERRORS
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.registry import ApiVersionRange
from pyclient.protocol.schema import Message

if TYPE_CHECKING:
    from broker_stub.node import Node
    from broker_stub.testing.topic_parts import FetchParts, Part, TopicParts

_CLOSE = Intervention(close=True)


class _Hit(NamedTuple):
    """A fault that hits a request, and the affected parts of the request."""

    fault: Fault
    parts: list[Part]
    group: str | None  # one of several groups in the request
    topics: Mapping[Target, list[Part]]  # of a Fetch whose partitions all fail


_Claim: TypeAlias = Target | str | None
"""What a fault has taken: a topic's or a group's part of a request, or all of it."""


class FaultInjector(Interceptor):
    """The broker's interceptor that applies faults."""

    def __init__(self, faults: Faults, node: Node) -> None:
        self._faults = faults
        self._node = node

    def served(self, served: Mapping[int, ApiVersionRange]) -> Mapping[int, ApiVersionRange]:
        """The API versions that are not hidden."""
        hidden = self._faults.hidden
        if not hidden:
            return served
        left = {key: hidden.get(key, versions) for key, versions in served.items()}
        return {key: versions for key, versions in left.items() if versions is not None}

    def on_request(self, request: Message, context: RequestContext) -> Intervention | None:
        """Choose the faults, and apply those that come before the side effect."""
        if not self._faults.standing:
            return None
        hits = self._hits(request, context)
        if not hits:
            return None
        context.memo = hits
        left = request
        for fault, _, group, topics in hits:
            effect = fault.effect
            if isinstance(effect, Drop) and not effect.after:
                return _CLOSE
            if isinstance(effect, Fail) and not effect.after:
                if fault.target is not None:
                    left = self._parts(fault).without(left, fault.target)
                elif group is not None:
                    left = _group_parts().without(left, group)
                elif topics:
                    left = self._fetch_parts().without(left, next(iter(topics)))
                else:
                    return _answer(request, effect.error)
        return Intervention(request=left)

    def on_response(
        self, request: Message, response: Message | None, context: RequestContext
    ) -> Intervention | None:
        """Apply the faults that come after the side effect."""
        hits, context.memo = context.memo, None
        if not isinstance(hits, list):
            return None
        delay_ms = 0.0
        cut_after_bytes = None
        for fault, parts, group, topics in hits:
            effect = fault.effect
            if isinstance(effect, Delay):
                delay_ms += effect.milliseconds
            elif isinstance(effect, Cut):
                cut_after_bytes = effect.after_bytes
            elif isinstance(effect, Drop):
                return _CLOSE
            elif fault.target is not None:
                if response is None:
                    return _CLOSE  # acks=0: the only way left to tell
                self._parts(fault).fail(response, fault.target, parts, effect.error)
            elif group is not None:
                assert response is not None  # only a Produce has none
                _group_parts().fail(request, response, group, effect.error)
            elif topics:
                assert response is not None
                for target, of_topic in topics.items():
                    self._fetch_parts().fail(response, target, of_topic, effect.error)
            elif effect.after:
                answer = _answer(request, effect.error)
                if answer.close:
                    return answer
                response = answer.response
        delay_ms = min(delay_ms, DELAY_MS_MAX)  # what several delays make together is bounded, too
        return Intervention(response=response, delay_ms=delay_ms, cut_after_bytes=cut_after_bytes)

    def _hits(self, request: Message, context: RequestContext) -> list[_Hit]:
        hits: list[_Hit] = []
        taken: set[_Claim] = set()
        for fault in self._faults.standing:
            if fault.api_key != context.api_key:
                continue
            if not _is_in_scope(fault, request, context):
                continue
            group = _one_of_several(fault, request)
            parts: list[Part] | None = []
            if fault.target is not None:
                parts = self._parts(fault).find(request, fault.target)
            topics: Mapping[Target, list[Part]] = {}
            if _fails_partitions(fault):
                topics = self._fetch_parts().find_all(request)
                parts = [] if topics else None
            if parts is None or not fault.when.wants():
                continue
            if not isinstance(fault.effect, Delay):
                is_part = isinstance(fault.effect, Fail)
                claim: _Claim = (fault.target or group) if is_part else None
                if not _is_free(claim, taken):
                    continue
                taken.add(claim)
            fault.when.took()
            fault.hits += 1
            hits.append(_Hit(fault, parts, group, topics))
            if fault.when.spent:
                self._faults.discard(fault)
        return hits

    def _parts(self, fault: Fault) -> TopicParts:
        from broker_stub.testing.topic_parts import topic_parts  # no broker's start waits for it

        return topic_parts(self._node, fault.api_key)

    def _fetch_parts(self) -> FetchParts:
        from broker_stub.testing.topic_parts import FetchParts

        return FetchParts(self._node, FETCH)


def _fails_partitions(fault: Fault) -> bool:
    """Whether the fault fails all partitions of a Fetch: Kafka fails few fetches as a whole."""
    if fault.api_key != FETCH or fault.target is not None or not isinstance(fault.effect, Fail):
        return False
    return fault.effect.error.code not in FETCH_WIDE_ERRORS


def _is_in_scope(fault: Fault, request: Message, context: RequestContext) -> bool:
    if fault.client_id not in (None, context.client_id):
        return False
    if fault.group is None and fault.member is None:
        return True
    is_about: bool = _group_parts().is_about(request, fault.group, fault.member)
    return is_about


def _one_of_several(fault: Fault, request: Message) -> str | None:
    """The fault's group, if it is only a part of the request."""
    if fault.group is None or fault.target is not None or not _group_parts().names_several(request):
        return None
    return fault.group


def _group_parts() -> ModuleType:
    from broker_stub.testing import group_parts  # only for faults of groups

    return group_parts


def _is_free(claim: _Claim, taken: set[_Claim]) -> bool:
    """Whether no fault before this one has the request, or the same part of it."""
    if not taken:
        return True
    if claim is None or None in taken:
        return False
    if isinstance(claim, str):
        return claim not in taken
    topic, partition = claim
    return not any(
        isinstance(one, Target)
        and one.topic == topic
        and (partition is None or one.partition in (None, partition))
        for one in taken
    )


def _answer(request: Message, error: BrokerResponseError) -> Intervention:
    refused = refusal(request, error)
    # Where no answer is awaited, hanging up is the only way left to tell.
    return _CLOSE if refused is None else Intervention(response=refused)
