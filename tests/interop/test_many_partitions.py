"""More partitions than open files are allowed. `make bench` has ten thousand of them."""

from tests.support.many_partitions import many_partitions


def test_partitions_need_not_be_fewer_than_open_files():
    many_partitions(1500, descriptors=400)
