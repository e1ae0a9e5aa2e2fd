"""The rules of delivery: every violation is found, and nothing else is reported."""

import pytest

from broker_stub.testing.delivery_checker import DeliveryChecker
from pyclient.types import TopicPartition

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def checker():
    return DeliveryChecker()


def acked(checker, *values, sender="producer", first_offset=0):
    for offset, value in enumerate(values, first_offset):
        checker.sent(sender, value).acked(ORDERS, offset)


def rules(checker):
    return [anomaly.rule for anomaly in checker.anomalies()]


def test_all_is_well_if_what_was_acked_is_in_the_log_in_order(checker):
    acked(checker, b"a", b"b", b"c")
    checker.log(ORDERS, [(0, b"a"), (1, b"b"), (2, b"c")])
    checker.check()


def test_gaps_between_offsets_are_legal(checker):
    checker.sent("producer", b"a").acked(ORDERS, 0)
    checker.sent("producer", b"b").acked(ORDERS, 7)
    checker.log(ORDERS, [(0, b"a"), (7, b"b")])
    checker.check()


def test_an_unknown_outcome_may_be_written_or_not(checker):
    checker.sent("producer", b"written")
    checker.sent("producer", b"not written")
    checker.log(ORDERS, [(0, b"written")])
    checker.check()


def test_an_acked_record_that_is_not_where_it_was_acked_is_lost(checker):
    acked(checker, b"a", b"b")
    checker.log(ORDERS, [(1, b"b")])
    assert rules(checker) == ["lost write"]


def test_an_acked_record_behind_all_that_was_seen_is_unseen(checker):
    acked(checker, b"a", b"b")
    checker.log(ORDERS, [(0, b"a")])
    assert rules(checker) == ["unseen"]


def test_an_acked_record_without_an_offset_only_has_to_be_there(checker):
    checker.sent("producer", b"a").acked(ORDERS, -1)
    checker.sent("producer", b"b").acked(ORDERS, -1)
    checker.log(ORDERS, [(5, b"a")])
    assert [str(one) for one in checker.anomalies()] == [
        "lost write: b'b' of producer, acked at orders-0@-1"
    ]


def test_a_value_at_two_offsets_is_a_duplicate(checker):
    acked(checker, b"a")
    checker.log(ORDERS, [(0, b"a"), (1, b"a")])
    assert rules(checker) == ["duplicate"]


def test_without_idempotence_a_duplicate_is_none_of_our_business():
    checker = DeliveryChecker(once=False, in_order=False)
    acked(checker, b"a")
    checker.log(ORDERS, [(0, b"a"), (1, b"a")])
    checker.check()


def test_two_values_at_one_offset_are_inconsistent(checker):
    checker.sent("producer", b"a")
    checker.sent("producer", b"b")
    checker.polled("reader", ORDERS, [(0, b"a")])
    checker.log(ORDERS, [(0, b"b")])
    assert rules(checker) == ["inconsistent offsets"]


def test_records_of_one_sender_in_the_wrong_order_are_found(checker):
    checker.sent("producer", b"a")
    checker.sent("producer", b"b")
    checker.log(ORDERS, [(0, b"b"), (1, b"a")])
    assert rules(checker) == ["non-monotonic send"]


def test_records_of_two_senders_have_no_order(checker):
    checker.sent("one", b"a")
    checker.sent("two", b"b")
    checker.log(ORDERS, [(0, b"b"), (1, b"a")])
    checker.check()


def test_a_failed_record_must_not_be_there(checker):
    checker.sent("producer", b"a").failed()
    checker.log(ORDERS, [(0, b"a")])
    assert rules(checker) == ["aborted read"]


def test_a_record_that_nobody_sent_is_a_phantom(checker):
    checker.log(ORDERS, [(0, b"a")])
    assert rules(checker) == ["phantom"]


def test_a_power_loss_excuses_what_it_took_from_the_end(checker):
    acked(checker, b"a", b"b", b"c")
    checker.power_lost(ORDERS, [(0, b"a"), (1, b"b"), (2, b"c")], [(0, b"a")])
    acked(checker, b"d", first_offset=1)
    checker.log(ORDERS, [(0, b"a"), (1, b"d")])
    checker.check()


def test_a_power_loss_does_not_excuse_what_was_lost_later(checker):
    acked(checker, b"a", b"b")
    checker.power_lost(ORDERS, [(0, b"a")], [(0, b"a")])
    checker.log(ORDERS, [(0, b"a")])
    assert rules(checker) == ["unseen"]


def test_a_power_loss_may_take_nothing_from_the_middle(checker):
    acked(checker, b"a", b"b")
    checker.power_lost(ORDERS, [(0, b"a"), (1, b"b")], [(1, b"b")])
    checker.log(ORDERS, [(1, b"b")])
    assert rules(checker) == ["torn log"]


def test_a_reader_that_goes_back_is_found(checker):
    acked(checker, b"a", b"b")
    checker.polled("reader", ORDERS, [(0, b"a"), (1, b"b")])
    checker.polled("reader", ORDERS, [(1, b"b")])
    assert rules(checker) == ["non-monotonic poll"]


def test_a_reader_that_skips_a_record_is_found(checker):
    acked(checker, b"a", b"b", b"c")
    checker.polled("reader", ORDERS, [(0, b"a"), (2, b"c")])
    checker.log(ORDERS, [(0, b"a"), (1, b"b"), (2, b"c")])
    assert rules(checker) == ["poll skip"]


def test_a_reader_with_a_new_assignment_may_begin_anywhere(checker):
    acked(checker, b"a", b"b", b"c")
    checker.polled("reader 1", ORDERS, [(0, b"a"), (1, b"b")])
    checker.polled("reader 2", ORDERS, [(1, b"b"), (2, b"c")])
    checker.check()


def test_values_must_be_unique(checker):
    checker.sent("one", b"a")
    with pytest.raises(ValueError, match="unique"):
        checker.sent("two", b"a")


def test_the_anomalies_are_in_the_error(checker):
    acked(checker, b"a")
    checker.log(ORDERS, [])
    with pytest.raises(AssertionError, match="1 anomalies:\nunseen: b'a' of producer, acked at"):
        checker.check()
