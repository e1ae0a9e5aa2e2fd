"""Files in the style of `server.properties`."""

import pytest

from pyclient.config.properties import parse_property, read_properties
from pyclient.errors import KafkaConfigurationError


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("a.b=c", ("a.b", "c")),
        ("  a.b =  c d  ", ("a.b", "c d")),
        ("a.b: c", ("a.b", "c")),
        ("listeners=PLAINTEXT://:9092", ("listeners", "PLAINTEXT://:9092")),
        ("a=", ("a", "")),
        ("a=b=c", ("a", "b=c")),
        (r"a\:b=c\\d\u0041", ("a:b", r"c\dA")),
        (r"a\\=b", ("a\\", "b")),
    ],
)
def test_a_line_is_a_key_and_a_value(line, pair):
    assert parse_property(line) == pair


@pytest.mark.parametrize("line", ["nonsense", "=value", "", "a b"])
def test_a_line_without_a_key_or_a_separator_is_refused(line):
    with pytest.raises(ValueError, match="key=value"):
        parse_property(line)


def test_a_file_has_comments_blank_lines_and_long_ones(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("# one\n! two\n\na=1\nlong=x,\\\n   y,\\\n   z\na = 2\nlast=z\\")
    assert read_properties(file) == {"a": "2", "long": "x,y,z", "last": "z"}


def test_in_a_file_a_space_separates_too_as_in_java(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("a b=c\nd\te f\ng = h\ni j :k\nl\\ m n\n")
    assert read_properties(file) == {"a": "b=c", "d": "e f", "g": "h", "i": "j :k", "l m": "n"}


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    file = tmp_path / "server.properties"
    file.write_bytes(b"\xef\xbb\xbfa=1\r\nb=2\r\n")
    assert read_properties(file) == {"a": "1", "b": "2"}


def test_what_is_wrong_is_told_with_its_place(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("a=1\n\nnonsense\n")
    with pytest.raises(KafkaConfigurationError, match="line 3"):
        read_properties(file)
    with pytest.raises(KafkaConfigurationError, match="can't read"):
        read_properties(tmp_path / "missing")
