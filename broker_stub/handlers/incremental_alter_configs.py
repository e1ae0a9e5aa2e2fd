"""IncrementalAlterConfigs (API key 44), versions 0-1.

Changes single options of topics (2) and brokers (4; an empty name stands for all): sets one,
deletes it (back to the default), appends to a list or subtracts from it; appending to an unset
list starts from its default. Other options stay. Of a broker's options, only the defaults of
topics can be changed; others, and other resources: INVALID_REQUEST. Responds when the change is
logged and applied. `validate_only` changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker_stub.handlers._config_alterations import Outcome, alter
from broker_stub.metadata.config_changes import ConfigOperation, Configs, ConfigView, carry_out
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.alter_configs import AlterConfigsResourceResponse
from pyclient.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> Parked[IncrementalAlterConfigsResponse]:
    parked: Parked[IncrementalAlterConfigsResponse] = Parked()

    def wanted(resource: AlterConfigsResource) -> Callable[[ConfigView], Configs]:
        return carry_out(
            [ConfigOperation(one.name, one.config_operation, one.value) for one in resource.configs]
        )

    def altered(outcomes: list[Outcome]) -> None:
        parked.answer(
            IncrementalAlterConfigsResponse(
                responses=[AlterConfigsResourceResponse(**one.fields()) for one in outcomes]
            )
        )

    alter(node, request.resources, wanted, altered, validate_only=request.validate_only)
    return parked


def refuse(
    request: IncrementalAlterConfigsRequest, error: BrokerResponseError
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                **Outcome(one.resource_type, one.resource_name, error).fields()
            )
            for one in request.resources
        ]
    )
