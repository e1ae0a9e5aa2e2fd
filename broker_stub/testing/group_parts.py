"""Which groups and members a request is about, and the part of a response that is about one group.

Most group APIs are about one group. Some name several: a fault of one group then fails only that
group's part. Serving thread only.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from broker_stub.dispatch import refusal
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from pyclient.protocol.registry import request_class
from pyclient.protocol.schema import Message

_FIND_COORDINATOR: Final = 10
_GROUP_KEY: Final = 0


class GroupLists(NamedTuple):
    """Where an API that takes several groups has them."""

    request: str
    response: str
    response_id: str
    element: Callable[[str], Any]  # one group, as the request names it


def _offset_fetch_group(group_id: str) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(group_id=group_id)


LISTS: Final[Mapping[int, GroupLists]] = {
    9: GroupLists("groups", "groups", "group_id", _offset_fetch_group),  # OffsetFetch
    _FIND_COORDINATOR: GroupLists("coordinator_keys", "coordinators", "key", str),
    15: GroupLists("groups", "groups", "group_id", str),  # DescribeGroups
    42: GroupLists("groups_names", "results", "group_id", str),  # DeleteGroups
}


def has_groups(api_key: int) -> bool:
    """Whether requests of this API name groups."""
    return api_key in LISTS or "group_id" in _fields(api_key)


def has_members(api_key: int) -> bool:
    """Whether requests of this API name members."""
    return bool({"member_id", "members"} & _fields(api_key))


def _fields(api_key: int) -> set[str]:
    return {one.name for one in request_class(api_key).fields}


def is_about(request: Any, group: str | None, member: str | None) -> bool:
    """Whether a request names the group, and the member by its member id or instance id."""
    if group is not None and group not in _groups(request):
        return False
    return member is None or member in _members(request)


def _groups(request: Any) -> list[str]:
    if request.api_key == _FIND_COORDINATOR:
        if request.key_type != _GROUP_KEY:
            return []
        keys: list[str] = request.coordinator_keys or [request.key]
        return keys
    lists = LISTS.get(request.api_key)
    named = [] if lists is None else [_id(one) for one in getattr(request, lists.request)]
    single = getattr(request, "group_id", None)
    return named or ([] if single is None else [single])


def _members(request: Any) -> Iterator[str]:
    for one in (request, *getattr(request, "members", ())):
        for field in ("member_id", "group_instance_id"):
            named = getattr(one, field, None)
            if named:
                yield named


def names_several(request: Any) -> bool:
    """Whether the request has a list of groups, each with its own part of the response."""
    lists = LISTS.get(request.api_key)
    return lists is not None and bool(getattr(request, lists.request))


def without(request: Any, group: str) -> Message:
    """The request without one of its groups."""
    lists = LISTS[request.api_key]
    others = [one for one in getattr(request, lists.request) if _id(one) != group]
    return _changed(request, **{lists.request: others})


def fail(request: Any, response: Any, group: str, error: BrokerResponseError) -> None:
    """Put the error into one group's part of the response."""
    lists = LISTS[request.api_key]
    alone = _changed(request, **{lists.request: [lists.element(group)]})
    refused = refusal(alone, error)
    parts = getattr(response, lists.response)
    others = [one for one in parts if getattr(one, lists.response_id) != group]
    parts[:] = [*others, *getattr(refused, lists.response)]


def _id(element: Any) -> str:
    named: str = element if isinstance(element, str) else element.group_id
    return named


def _changed(request: Any, **changes: object) -> Message:
    values = {one.name: getattr(request, one.name) for one in type(request).fields}
    copy: Message = type(request)(**{**values, **changes})
    return copy
