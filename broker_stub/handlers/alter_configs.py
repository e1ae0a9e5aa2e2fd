"""AlterConfigs (API key 33), versions 0-2.

Replaces the whole configuration of topics (2) and brokers (4; an empty name stands for all):
options that a request leaves out go back to their defaults. Of a broker's options, only the
defaults of topics can be changed; others, and other resources: INVALID_REQUEST. Responds when the
change is logged and applied. `validate_only` changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker_stub.handlers._config_alterations import Outcome, alter
from broker_stub.metadata.config_changes import Configs, ConfigView, replace_with
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: AlterConfigsRequest, context: RequestContext
) -> Parked[AlterConfigsResponse]:
    parked: Parked[AlterConfigsResponse] = Parked()

    def wanted(resource: AlterConfigsResource) -> Callable[[ConfigView], Configs]:
        return replace_with([(one.name, one.value) for one in resource.configs])

    def altered(outcomes: list[Outcome]) -> None:
        parked.answer(
            AlterConfigsResponse(
                responses=[AlterConfigsResourceResponse(**one.fields()) for one in outcomes]
            )
        )

    alter(node, request.resources, wanted, altered, validate_only=request.validate_only)
    return parked


def refuse(request: AlterConfigsRequest, error: BrokerResponseError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                **Outcome(one.resource_type, one.resource_name, error).fields()
            )
            for one in request.resources
        ]
    )
