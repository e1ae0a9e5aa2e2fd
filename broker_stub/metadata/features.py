"""The features that the cluster has levels of, and what changing a level needs. Pure functions.

One node writes all metadata in one version, that of Apache Kafka 4.3: the only level there is.
Clients take `transaction.version` 2 as a promise to serve Produce 12 and EndTxn 5, so it is not
among them.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pyclient.error_codes import InvalidUpdateVersionError

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class FeatureLevels(NamedTuple):
    """The lowest and the highest level that can be had, and the one in force."""

    lowest: int
    highest: int
    finalized: int


FEATURES: Final[Mapping[str, FeatureLevels]] = {"metadata.version": FeatureLevels(30, 30, 30)}


class FeatureUpdate(NamedTuple):
    """A level that somebody wants; the type says whether it may be lower than now."""

    feature: str
    level: int
    upgrade_type: int


def check_updates(updates: Iterable[FeatureUpdate], node_id: int) -> None:
    """Refuse all of the updates if one of them can't be had; others change nothing here.

    Raises:
        InvalidUpdateVersionError: a feature or its level is not supported, or it would be lower.
    """
    for update in updates:
        reason = _objection(update, node_id)
        if reason is not None:
            raise InvalidUpdateVersionError(
                "The update failed for all features since the following feature had an error: "
                f"Invalid update version {update.level} for feature {update.feature}. {reason}"
            )


def _objection(update: FeatureUpdate, node_id: int) -> str | None:
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    levels = FEATURES.get(update.feature)
    if levels is None:
        return f"Local controller {node_id} does not support this feature."
    if not levels.lowest <= update.level <= levels.highest:
        return f"Local controller {node_id} only supports versions {levels.lowest}-{levels.highest}"
    return None
