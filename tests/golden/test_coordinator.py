"""Which partition of `__consumer_offsets` holds a group: Java's hash, over UTF-16 units."""

from broker_stub.coordinator.placement import partition_for
from tests.golden.loader import golden_lines


def test_a_group_is_kept_where_apache_kafka_keeps_it() -> None:
    for line in golden_lines("coordinator.jsonl.gz"):
        assert partition_for(line["id"], 50) == line["partition_of_50"], line
