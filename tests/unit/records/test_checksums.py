"""CRC-32C and murmur2, both twins, against known values and each other."""

from types import ModuleType

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient import _twin

NATIVE, PURE = (_twin.load(name)["batch"] for name in ("native", "python"))


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        # RFC 3720, appendix B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_known_checksums(data: bytes, checksum: int, twin: ModuleType) -> None:
    assert twin.crc32c(data) == checksum
    assert twin.crc32c(bytearray(data)) == checksum
    assert twin.crc32c(memoryview(data)) == checksum


# Around the lanes of the hardware path: 3 x 256 and 3 x 2048 bytes at once.
@pytest.mark.parametrize(
    "size", [0, 1, 7, 8, 9, 767, 768, 769, 1536, 6143, 6144, 6145, 6912, 12_289, 100_003]
)
def test_the_instruction_and_the_table_agree_at_every_lanes_edge(size: int) -> None:
    data = bytes((17 * index + index // 251) & 0xFF for index in range(size + 1))
    for start in (0, 1):  # unaligned too
        piece = data[start : start + size]
        expected = google_crc32c.value(piece)
        assert NATIVE.crc32c(memoryview(data)[start : start + size]) == expected
        assert NATIVE.crc32c_without_hardware(piece) == expected


@given(st.binary(max_size=3000))
def test_all_implementations_agree(data: bytes) -> None:
    assert NATIVE.crc32c(data) == NATIVE.crc32c_without_hardware(data) == PURE.crc32c(data)
    assert NATIVE.murmur2(data) == PURE.murmur2(data)
    assert NATIVE.partition_for_key(data, 97) == PURE.partition_for_key(data, 97)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_hash_as_in_javas_own_test(key: bytes, hashed: int, twin: ModuleType) -> None:
    assert twin.murmur2(key) == hashed
    assert twin.murmur2(bytearray(key)) == hashed


def test_text_is_refused(twin: ModuleType) -> None:
    with pytest.raises(TypeError):
        twin.murmur2("text")
    with pytest.raises(TypeError):
        twin.partition_for_key("text", 1)
    with pytest.raises(TypeError):
        twin.crc32c("text")


def test_no_key_has_a_partition_among_none(twin: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError):
        twin.partition_for_key(b"key", 0)
