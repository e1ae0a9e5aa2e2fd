"""Checks the leader epoch that a client sends with a request (KIP-320). A pure function."""

from typing import Final

from pyclient.error_codes import FencedLeaderEpochError, UnknownLeaderEpochError

NO_EPOCH: Final = -1
"""The client does not know the epoch, so nothing is checked."""


def check_leader_epoch(partition: object, leader_epoch: int, client_epoch: int) -> None:
    """Refuse a client whose metadata is older or newer than the broker's.

    Raises:
        FencedLeaderEpochError: the client knows an older epoch.
        UnknownLeaderEpochError: the client knows a newer epoch than this broker.
    """
    if client_epoch in (NO_EPOCH, leader_epoch):
        return
    text = f"{partition} is in epoch {leader_epoch}, not {client_epoch}"
    if client_epoch < leader_epoch:
        raise FencedLeaderEpochError(text)
    raise UnknownLeaderEpochError(text)
