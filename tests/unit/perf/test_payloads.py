"""Values and keys: sizes, compressibility, distributions, files."""

import zlib
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from pyclient.errors import KafkaConfigurationError
from pyclient.perf import generated_values, uniform_keys, values_from_file, zipf_keys


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_values_compress_as_asked(share: float) -> None:
    value = generated_values(10_000, share)[0]
    assert len(value) == 10_000
    assert len(zlib.compress(value)) / 10_000 == pytest.approx(1 - share, abs=0.02)


def test_values_are_letters_otherwise_and_the_same_in_every_run() -> None:
    values = generated_values(50)
    assert all(value.isalpha() and value.isupper() and len(value) == 50 for value in values)
    assert len(set(values)) == len(values)
    assert values == generated_values(50)


def test_a_compressibility_is_a_share() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"from 0 to 1, not 1\.5"):
        generated_values(10, 1.5)


def test_uniform_keys_are_equally_frequent() -> None:
    counts = Counter(islice(uniform_keys(10), 10_000))
    assert len(counts) == 10
    assert min(counts.values()) > 800


def test_zipf_keys_fall_with_their_rank() -> None:
    counts = Counter(islice(zipf_keys(100), 20_000))
    assert counts[b"key-00000000"] / counts[b"key-00000001"] == pytest.approx(2, rel=0.15)
    assert counts[b"key-00000000"] / counts[b"key-00000009"] == pytest.approx(10, rel=0.3)


def test_a_file_is_split_at_the_delimiter(tmp_path: Path) -> None:
    file = tmp_path / "values"
    file.write_bytes(b"one\ntwo\n")
    assert values_from_file(file) == [b"one", b"two"]
    assert values_from_file(file, b"o") == [b"", b"ne\ntw", b"\n"]


def test_a_missing_or_empty_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match="cannot read the payload file"):
        values_from_file(tmp_path / "missing")
    (tmp_path / "empty").touch()
    with pytest.raises(KafkaConfigurationError, match="is empty"):
        values_from_file(tmp_path / "empty")
