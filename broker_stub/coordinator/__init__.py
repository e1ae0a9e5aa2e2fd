"""The group coordinator: membership of classic groups and their committed offsets."""

from broker_stub.coordinator.group_coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
