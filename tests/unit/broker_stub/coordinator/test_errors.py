"""What clients of groups are told when the coordinator's log refuses."""

import errno

import pytest

from broker_stub.coordinator.errors import as_coordinator
from pyclient import error_codes
from pyclient.error_codes import NotCoordinatorError
from pyclient.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.support.failing_disk import FailingDisk
from tests.support.group_member import GroupMember, find_coordinator
from tests.support.node_harness import NodeHarness
from tests.support.offset_requests import offset_fetch_request


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        ("UnknownTopicOrPartitionError", "CoordinatorNotAvailableError"),
        ("NotEnoughReplicasError", "CoordinatorNotAvailableError"),
        ("RequestTimedOutError", "CoordinatorNotAvailableError"),
        ("NotLeaderOrFollowerError", "NotCoordinatorError"),
        ("KafkaStorageError", "NotCoordinatorError"),
        ("RecordTooLargeError", "UnknownServerError"),
        ("RecordBatchTooLargeError", "UnknownServerError"),
        ("InvalidFetchSizeError", "UnknownServerError"),
        ("RebalanceInProgressError", "RebalanceInProgressError"),
    ],
)
def test_errors_of_the_log_are_told_as_apache_kafka_tells_them(refused, told):
    translated = as_coordinator(getattr(error_codes, refused)("why"))
    assert type(translated) is getattr(error_codes, told)
    assert "why" in str(translated)


@pytest.mark.parametrize("version", [3, 9])
def test_a_group_that_cannot_be_written_is_not_created(harness, monkeypatch, version):
    find_coordinator(harness)
    disk = FailingDisk(monkeypatch)
    disk.refuse(errno.ENOSPC, "pwrite", suffix=".log")
    member = GroupMember(harness, join=version)
    assert member.start_join().response.error_code == NotCoordinatorError.code
    assert harness.node.coordinator.groups() == []
    disk.mend()
    assert member.join().generation_id == 1


def test_a_failing_disk_sends_members_to_look_for_their_coordinator(
    harness: NodeHarness, monkeypatch, caplog
):
    find_coordinator(harness)
    harness.create_topic("orders")
    member = GroupMember(harness)
    member.join()
    disk = FailingDisk(monkeypatch)
    disk.refuse(errno.ENOSPC, "pwrite", suffix=".log")
    assert (
        member.start_sync({member.member_id: b"a"}).response.error_code == NotCoordinatorError.code
    )
    disk.mend()
    member.join()
    assert member.start_sync({member.member_id: b"a"}).response.error_code == 0
    disk.refuse(errno.ENOSPC, "pwrite", suffix=".log")
    assert member.commit(7) == NotCoordinatorError.code
    assert "cannot write group group to __consumer_offsets" in caplog.text
    committed = offset_fetch_request("group", {"orders": [0]}, 7)
    assert harness.ask(committed, 7).topics[0].partitions[0].committed_offset == -1
    disk.mend()
    assert member.commit(7) == 0
    member.leave()
    disk.refuse(errno.ENOSPC, "pwrite", suffix=".log")
    delete = DeleteGroupsRequest(groups_names=["group"])
    assert harness.ask(delete).results[0].error_code == NotCoordinatorError.code
    disk.mend()
    assert harness.ask(delete).results[0].error_code == 0
