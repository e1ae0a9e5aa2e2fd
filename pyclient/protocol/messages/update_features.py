"""UpdateFeatures (API key 57): finalize feature levels of the cluster."""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class FeatureUpdateKey(Struct):
    """A feature and the level it is to have; 0 removes it."""

    feature: str = field(STRING)
    max_version_level: int = field(INT16)
    allow_downgrade: bool = field(BOOL, versions="0")
    # 1 upgrade, 2 safe downgrade, 3 unsafe downgrade
    upgrade_type: int = field(INT8, versions="1+", default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible="0+"):
    timeout_ms: int = field(INT32, default=60000)
    feature_updates: list[FeatureUpdateKey] = field(array(FeatureUpdateKey))
    validate_only: bool = field(BOOL, versions="1+")

    def version_floor(self) -> int:
        """1 for a request that only validates, which version 0 would carry out, or downgrades."""
        upgrades = all(one.upgrade_type == 1 for one in self.feature_updates)
        return super().version_floor() if upgrades and not self.validate_only else 1


class UpdatableFeatureResult(Struct):
    feature: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible="0+"):
    """Which features were changed."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    results: list[UpdatableFeatureResult] = field(
        array(UpdatableFeatureResult), versions="0-1", ignorable=True
    )
