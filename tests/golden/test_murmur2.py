"""The partitioner's hash against Java's, on both twins."""

import base64
from types import ModuleType

from tests.golden.loader import golden_lines

KEYS = golden_lines("murmur2.jsonl.gz")


def test_every_key_hashes_as_in_java(twin: ModuleType) -> None:
    keys = [base64.b64decode(line["key"]) for line in KEYS]
    assert [twin.murmur2(key) for key in keys] == [line["murmur2"] for line in KEYS]
    assert [twin.murmur2(memoryview(key)) for key in keys] == [line["murmur2"] for line in KEYS]


def test_every_key_goes_to_javas_partition(twin: ModuleType) -> None:
    partitions = [
        (twin.murmur2(base64.b64decode(line["key"])) & 0x7FFFFFFF) % line["partitions"]
        for line in KEYS
    ]
    assert partitions == [line["partition"] for line in KEYS]
