"""Syncing whole file systems: only where that is as safe as an fsync of every file."""

import os
import platform

import pytest

from broker_stub.log.files import file_systems


@pytest.fixture
def descriptor(tmp_path):
    number = os.open(tmp_path, os.O_RDONLY)
    yield number
    os.close(number)


@pytest.mark.parametrize("release", ["4.19.0-26-amd64", "5.7", "unknown", ""])
def test_a_kernel_that_does_not_report_failed_writes_is_not_trusted(
    monkeypatch, descriptor, release
):
    monkeypatch.setattr(platform, "release", lambda: release)
    assert not file_systems.sync_file_systems([descriptor])


def test_an_unknown_file_system_is_not_trusted(monkeypatch, descriptor):
    monkeypatch.setattr(platform, "release", lambda: "6.9-rc1")
    monkeypatch.setattr(file_systems, "_DURABLE", frozenset({"fuse"}))
    assert not file_systems.sync_file_systems([descriptor])


def test_a_closed_descriptor_is_not_synced(descriptor):
    other = os.dup(descriptor)
    os.close(other)
    assert not file_systems.sync_file_systems([other])
