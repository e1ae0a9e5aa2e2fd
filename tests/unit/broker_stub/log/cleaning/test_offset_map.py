"""The map of compaction: last offsets by key, also when digests collide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_stub.log.cleaning.offset_map import OffsetMap


def same_digest(_key: bytes) -> bytes:
    return b"\1" * 16


def few_digests(key: bytes) -> bytes:
    return bytes([len(key) % 3]) * 16


@pytest.mark.parametrize("digest", [None, same_digest, few_digests])
@given(puts=st.lists(st.binary(max_size=6), max_size=80))
def test_it_has_the_last_offset_of_every_key(digest, puts):
    offsets = OffsetMap(1 << 20) if digest is None else OffsetMap(1 << 20, digest)
    for offset, key in enumerate(puts):
        assert offsets.put(key, offset)
    expected = {key: offset for offset, key in enumerate(puts)}
    assert {key: offsets.get(key) for key in expected} == expected
    assert len(offsets) == len(expected)
    assert offsets.get(b"not among them") == -1


def test_it_grows():
    offsets = OffsetMap(10 << 20)
    for number in range(5000):
        offsets.put(b"%d" % number, number)
    assert all(offsets.get(b"%d" % number) == number for number in range(5000))


def test_a_full_map_takes_no_new_key_but_later_offsets_of_those_it_has():
    offsets = OffsetMap(1024 * 32 + 100)
    taken = 0
    while offsets.put(b"key %03d" % taken, taken):
        taken += 1
    assert 0 < taken < 12
    assert offsets.put(b"key 000", 77)
    assert offsets.get(b"key 000") == 77
    assert offsets.get(b"key %03d" % taken) == -1


def test_one_key_has_room_in_any_map():
    offsets = OffsetMap(0)
    assert offsets.put(b"a" * 1000, 5)
    assert not offsets.put(b"b", 6)


def test_the_empty_key_is_a_key():
    offsets = OffsetMap(1 << 20)
    assert offsets.get(b"") == -1
    offsets.put(b"", 3)
    assert offsets.get(b"") == 3
