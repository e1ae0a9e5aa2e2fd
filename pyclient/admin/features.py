"""What brokers can do: API versions and features."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.types.cluster import BrokerVersionData, UpdateFeatureType, release_of
from pyclient.admin.types.enums import member_of
from pyclient.errors import for_code
from pyclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyclient.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pyclient.protocol.registry import ApiVersionRange
from pyclient.version import __version__


class FeatureCalls(AdminCalls):
    """The calls about API versions and features."""

    def api_versions(self) -> dict[int, ApiVersionRange]:
        """The lowest and the highest version of each API that a broker serves, by API key."""
        return _served(self._api_versions(None))

    def get_broker_version_data(self, broker_id: int) -> BrokerVersionData:
        """What a broker serves, and the release that fits it."""
        served = _served(self._api_versions(broker_id))
        return BrokerVersionData(release_of(served), served)

    def describe_features(
        self, send_request_to_controller: bool = False
    ) -> dict[str, dict[str, Any]]:
        """Each feature's supported levels, and the cluster's current level.

        Args:
            send_request_to_controller: ask the controller, and not just any broker.
        """
        node = self._requests.controller() if send_request_to_controller else None
        response = self._api_versions(node)
        epoch = response.finalized_features_epoch
        found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for able in response.supported_features:
            found[able.name]["supported"] = (able.min_version, able.max_version)
        for final in response.finalized_features:
            levels = (final.min_version_level, final.max_version_level)
            found[final.name]["finalized"] = levels
            found[final.name]["finalized_epoch"] = epoch if epoch >= 0 else None
        return dict(found)

    def _api_versions(self, node: int | None) -> ApiVersionsResponse:
        request = ApiVersionsRequest(
            client_software_name="kafka-pyclient", client_software_version=__version__
        )
        return self._requests.ask(
            request, ApiVersionsResponse, self._requests.deadline(), node=node
        )

    def update_features(
        self,
        feature_updates: Mapping[str, int | tuple[UpdateFeatureType | str | int, int]],
        validate_only: bool = False,
        timeout_ms: float = 60_000,
    ) -> dict[str, str]:
        """Change the levels of features; `OK` or the error by feature.

        Args:
            feature_updates: the level by feature, or how it may change (`upgrade`,
                `safe_downgrade`, `unsafe_downgrade`) and the level; a level of 0 turns it off.
            validate_only: only check whether the change is possible (Kafka 3.3 and later).
            timeout_ms: how long the call may take.

        Raises:
            KafkaError: no feature was changed, as in `InvalidUpdateVersionError`.
        """
        updates = [_update(feature, wanted) for feature, wanted in feature_updates.items()]
        deadline = self._requests.deadline(timeout_ms)

        def update_once() -> UpdateFeaturesResponse:
            request = UpdateFeaturesRequest(
                timeout_ms=int(deadline.remaining_ms()),
                feature_updates=updates,
                validate_only=validate_only,
            )
            return self._requests.ask_once(
                request, UpdateFeaturesResponse, deadline, self._requests.controller()
            )

        response = self._requests.repeat(update_once, deadline)
        # From version 2 on there is one error for all of them, which was raised.
        found = dict.fromkeys(feature_updates, "OK")
        for one in response.results:
            if one.error_code:
                found[one.feature] = str(for_code(one.error_code)(one.error_message or ""))
        return found


def _served(response: ApiVersionsResponse) -> dict[int, ApiVersionRange]:
    return {
        one.api_key: ApiVersionRange(one.min_version, one.max_version) for one in response.api_keys
    }


def _update(
    feature: str, wanted: int | tuple[UpdateFeatureType | str | int, int]
) -> FeatureUpdateKey:
    kind, level = wanted if isinstance(wanted, tuple) else (UpdateFeatureType.UPGRADE, wanted)
    return FeatureUpdateKey(
        feature=feature,
        max_version_level=level,
        upgrade_type=member_of(UpdateFeatureType, kind),
    )
