"""UpdateFeatures (API key 57), versions 0-2.

Each feature stays at one level here (see `metadata.features`): an update to it succeeds and changes
nothing; any other fails the whole request with INVALID_UPDATE_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.metadata.features import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    check_updates,
    features,
)
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: UpdateFeaturesRequest, context: RequestContext
) -> UpdateFeaturesResponse:
    """Check the levels; nothing changes."""

    def upgrade_type(given: int, *, allow_downgrade: bool) -> int:
        if context.api_version:
            return given
        return SAFE_DOWNGRADE if allow_downgrade else UPGRADE

    check_updates(
        (
            FeatureUpdate(
                one.feature,
                one.max_version_level,
                upgrade_type(one.upgrade_type, allow_downgrade=one.allow_downgrade),
            )
            for one in request.feature_updates
        ),
        node.node_id,
        features(node.config["transaction.version"]),
    )
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=one.feature, error_message="NONE")
            for one in request.feature_updates
        ],
    )


def refuse(request: UpdateFeaturesRequest, error: BrokerResponseError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=message_of(error))
