"""The cluster and its disks, described by brokers of any age."""

import pytest

from pyclient.errors import ClusterAuthorizationError, UnknownTopicOrPartitionError
from pyclient.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from pyclient.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pyclient.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from pyclient.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionResult,
    TopicResult,
)
from pyclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)


def test_the_cluster_is_described(admin, controller, other):
    found = DescribeClusterResponse(
        cluster_id="c", controller_id=1, cluster_authorized_operations=0b1_1000_0000
    )
    for broker in (controller, other):
        broker.on(DescribeClusterRequest, found)
    described = admin.describe_cluster()
    assert described == {
        "cluster_id": "c",
        "controller_id": 1,
        "brokers": [],
        "cluster_authorized_operations": ["ALTER", "DESCRIBE"],
    }
    assert described.cluster_id == described["cluster_id"]
    with pytest.raises(AttributeError, match="ClusterDescription has no 'custer_id'; it has"):
        _ = described.custer_id


def test_an_old_cluster_is_described_by_its_metadata(admin, controller, other):
    for broker in (controller, other):
        del broker.versions[DescribeClusterRequest.api_key]
        broker.cut()
    described = admin.describe_cluster()
    assert described["controller_id"] == 1
    assert [one["broker_id"] for one in described["brokers"]] == [1, 2]


def test_a_cluster_that_must_not_be_described_is_an_error(admin, controller, other):
    refused = DescribeClusterResponse(error_code=ClusterAuthorizationError.code)
    for broker in (controller, other):
        broker.on(DescribeClusterRequest, refused)
    with pytest.raises(ClusterAuthorizationError):
        admin.describe_cluster()


def log_dir(path):
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir=path)])


def test_every_broker_describes_its_disks(admin, controller, other):
    controller.on(DescribeLogDirsRequest, log_dir("/one"))
    other.on(DescribeLogDirsRequest, log_dir("/two"))
    described = admin.describe_log_dirs()
    assert [(one["broker"], one["log_dirs"][0]["log_dir"]) for one in described] == [
        (1, "/one"),
        (2, "/two"),
    ]
    assert controller.received(DescribeLogDirsRequest)[0].topics is None
    (described,) = admin.describe_log_dirs(brokers=[2])
    assert described["broker"] == 2


@pytest.mark.parametrize("asked", [{"orders": [0, 1]}, ["orders"]])
def test_partitions_on_the_disks_can_be_chosen(admin, network, controller, asked):
    network.add_topic("orders", partitions=2)
    controller.on(DescribeLogDirsRequest, log_dir("/one"))
    admin.describe_log_dirs(asked, brokers=[1])
    (topic,) = controller.received(DescribeLogDirsRequest)[0].topics
    assert (topic.topic, topic.partitions) == ("orders", [0, 1])


def test_a_topic_that_is_on_no_disk_is_an_error(admin):
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'oders'"):
        admin.describe_log_dirs(["oders"])


def test_a_broker_that_must_not_tell_is_an_error(admin, controller):
    refused = DescribeLogDirsResponse(error_code=ClusterAuthorizationError.code)
    controller.on(DescribeLogDirsRequest, refused)
    with pytest.raises(ClusterAuthorizationError, match="broker 1"):
        admin.describe_log_dirs(brokers=[1])


def test_partitions_are_described_page_by_page(admin, controller, other):
    page = DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(name="orders")],
        next_cursor=Cursor(topic_name="orders", partition_index=2),
    )
    for broker in (controller, other):
        broker.on(DescribeTopicPartitionsRequest, page)
    result = admin.describe_topic_partitions(["orders"], response_partition_limit=2)
    assert [one["name"] for one in result["topics"]] == ["orders"]
    admin.describe_topic_partitions(["orders"], cursor=result["next_cursor"])
    received = [
        *controller.received(DescribeTopicPartitionsRequest),
        *other.received(DescribeTopicPartitionsRequest),
    ]
    assert sorted(one.response_partition_limit for one in received) == [2, 2000]
    assert [one.cursor.partition_index for one in received if one.cursor is not None] == [2]


def test_features_are_described(admin, controller, other):
    features = ApiVersionsResponse(
        api_keys=controller.api_versions(None, 0).api_keys,
        supported_features=[
            SupportedFeatureKey(name="group.version", min_version=0, max_version=1)
        ],
        finalized_features=[
            FinalizedFeatureKey(name="group.version", max_version_level=1, min_version_level=1)
        ],
        finalized_features_epoch=7,
    )
    controller.on(ApiVersionsRequest, features)
    assert admin.describe_features(send_request_to_controller=True) == {
        "group.version": {"supported": (0, 1), "finalized": (1, 1), "finalized_epoch": 7}
    }


def test_the_controllers_are_described(admin, controller, other):
    partition = PartitionResult(leader_id=1, high_watermark=9)
    topic = TopicResult(topic_name="__cluster_metadata", partitions=[partition])
    for broker in (controller, other):
        broker.on(DescribeQuorumRequest, DescribeQuorumResponse(topics=[topic]))
    described = admin.describe_metadata_quorum()
    assert described["topics"][0]["partitions"][0]["high_watermark"] == 9
    partition.error_code = UnknownTopicOrPartitionError.code
    with pytest.raises(UnknownTopicOrPartitionError, match="__cluster_metadata"):
        admin.describe_metadata_quorum()
