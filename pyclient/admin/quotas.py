"""Quotas of users, client ids and addresses: describe, change.

kafka-python has no such calls; these follow Java's.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.work import Work
from pyclient.admin.types.result import AdminResult
from pyclient.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from pyclient.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_EXACT, _DEFAULT, _ANY = 0, 1, 2


class QuotaMatch(Enum):
    """A filter for names of entities."""

    ANY = "any"


ANY: Final = QuotaMatch.ANY
QuotaEntity: TypeAlias = Mapping[str, str | None]
"""Whom a quota is for: a name by `user`, `client-id` or `ip`; None is the default of all."""


class ClientQuotas(AdminResult):
    """The quotas of an entity, as in `producer_byte_rate`."""

    entity: dict[str, str | None]
    quotas: dict[str, float]


class ClientQuotaAlteration:
    """A change to an entity's quotas; None removes one."""

    def __init__(self, entity: QuotaEntity, quotas: Mapping[str, float | None]) -> None:
        """Describe the change.

        Args:
            entity: as in `{"user": "alice", "client-id": None}`, which is the default for all
                client ids of this user.
            quotas: values by name: `producer_byte_rate`, `consumer_byte_rate`,
                `request_percentage`, `controller_mutation_rate`; for an `ip`,
                `connection_creation_rate`.
        """
        self.entity = dict(entity)
        self.quotas = dict(quotas)

    def __repr__(self) -> str:
        return f"ClientQuotaAlteration({self.entity}, {self.quotas})"


class AlteredClientQuotas(AdminResult):
    """An entity, and the error's text if its quotas were not changed."""

    entity: dict[str, str | None]
    error: str | None


class QuotaCalls(AdminCalls):
    """The calls about quotas."""

    def describe_client_quotas(
        self,
        entity: Mapping[str, str | QuotaMatch | None] | None = None,
        strict: bool = False,
    ) -> list[ClientQuotas]:
        """The quotas that were set, for entities that match; by default all.

        Args:
            entity: a name, `ANY` or None for the default, by `user`, `client-id` or `ip`.
            strict: leave out entities that have other parts, too.
        """
        request = DescribeClientQuotasRequest(
            components=[_component(kind, name) for kind, name in (entity or {}).items()],
            strict=strict,
        )
        response = self._requests.ask(
            request, DescribeClientQuotasResponse, self._requests.deadline()
        )
        return [
            ClientQuotas(
                entity={part.entity_type: part.entity_name for part in one.entity},
                quotas={quota.key: quota.value for quota in one.values},
            )
            for one in response.entries or ()
        ]

    def alter_client_quotas(
        self, alterations: Iterable[ClientQuotaAlteration], validate_only: bool = False
    ) -> list[AlteredClientQuotas]:
        """Set and remove quotas; the outcome for each entity.

        Args:
            alterations: the changes, one for each entity.
            validate_only: only check whether the changes are possible.

        Raises:
            KafkaError: no change was attempted, or its outcome is unknown.
        """
        outcomes = self._requests.settle(
            Work(
                {_key(one.entity): one for one in alterations},
                lambda pending: AlterClientQuotasRequest(
                    entries=[_entry(one) for one in pending], validate_only=validate_only
                ),
                lambda response: (
                    (_key({part.entity_type: part.entity_name for part in one.entity}), one)
                    for one in response.entries
                ),
                _name,
                self._requests.to_any,
                self._requests.deadline(),
                repeatable=True,  # the values are absolute
            )
        )
        return [
            AlteredClientQuotas(
                entity=dict(key), error=None if one.error is None else str(one.error)
            )
            for key, one in outcomes.items()
        ]


_Key: TypeAlias = tuple[tuple[str, str | None], ...]


def _key(entity: QuotaEntity) -> _Key:
    return tuple(sorted(entity.items(), key=lambda part: part[0]))


def _name(key: _Key) -> str:
    return ", ".join(
        f"{kind} {name!r}" if name is not None else f"the default {kind}" for kind, name in key
    )


def _component(kind: str, name: str | QuotaMatch | None) -> ComponentData:
    if isinstance(name, QuotaMatch):
        return ComponentData(entity_type=kind, match_type=_ANY, match=None)
    match_type = _DEFAULT if name is None else _EXACT
    return ComponentData(entity_type=kind, match_type=match_type, match=name)


def _entry(alteration: ClientQuotaAlteration) -> EntryData:
    return EntryData(
        entity=[
            EntityData(entity_type=kind, entity_name=name)
            for kind, name in alteration.entity.items()
        ],
        ops=[
            OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
            for key, value in alteration.quotas.items()
        ],
    )
