"""The cluster's feature levels, and the checks of updates. Pure functions.

All metadata is written in one version, that of Apache Kafka 4.3. `transaction.version` has the
level that the option of that name sets.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyclient.error_codes import InvalidUpdateVersionError

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class FeatureLevels(NamedTuple):
    """The lowest and highest supported level of a feature, and the finalized one."""

    lowest: int
    highest: int
    finalized: int


def features(transaction_version: int) -> Mapping[str, FeatureLevels]:
    """Every feature, with the level of `transaction.version` that is configured."""
    return {
        "metadata.version": FeatureLevels(30, 30, 30),
        "transaction.version": FeatureLevels(0, 2, transaction_version),
    }


class FeatureUpdate(NamedTuple):
    """A requested level; the type says whether it may be lower than the current one."""

    feature: str
    level: int
    upgrade_type: int


def check_updates(
    updates: Iterable[FeatureUpdate], node_id: int, levels: Mapping[str, FeatureLevels]
) -> None:
    """Refuse all updates if one is not supported. Supported ones change nothing.

    Raises:
        InvalidUpdateVersionError: a feature or its level is not supported, or it would be lower.
    """
    for update in updates:
        reason = _objection(update, node_id, levels.get(update.feature))
        if reason is not None:
            raise InvalidUpdateVersionError(
                "The update failed for all features since the following feature had an error: "
                f"Invalid update version {update.level} for feature {update.feature}. {reason}"
            )


def _objection(update: FeatureUpdate, node_id: int, levels: FeatureLevels | None) -> str | None:
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if levels is None:
        return f"Local controller {node_id} does not support this feature."
    if not levels.lowest <= update.level <= levels.highest:
        return f"Local controller {node_id} only supports versions {levels.lowest}-{levels.highest}"
    if update.level != levels.finalized:
        return f"The option {update.feature} of this broker sets it."
    return None
