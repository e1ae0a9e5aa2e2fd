"""Totals over sample windows."""

import math

import pytest

from pyclient.metrics import DEFAULT_WINDOWS, MetricName, SampleWindows, WindowedTotals

WINDOW_MS = DEFAULT_WINDOWS.length_ms


@pytest.fixture
def window():
    return WindowedTotals(["records", "bytes"], now_ms=0)


def test_the_first_window_counts_as_a_whole_one(window):
    window.totals["records"] += 300
    assert window.rate("records", now_ms=1_000) == 300 / (WINDOW_MS / 1000)


def test_a_rate_is_about_the_last_windows_only(window):
    window.totals["records"] += 1_000_000
    for end in (1, 2, 3):
        window.roll(end * WINDOW_MS)
    window.totals["records"] += 600
    assert window.rate("records", now_ms=4 * WINDOW_MS) == 600 / (2 * WINDOW_MS / 1000)
    assert window.totals["records"] == 1_000_600


def test_rolling_too_early_does_nothing(window):
    window.totals["records"] += 5
    window.roll(WINDOW_MS - 1)
    assert window.next_roll_ms == WINDOW_MS
    assert window.rate("records", WINDOW_MS) == 5 / (WINDOW_MS / 1000)


def test_an_average_is_a_sum_by_a_count(window):
    assert math.isnan(window.average("bytes", "records"))
    window.totals["bytes"] += 300
    window.totals["records"] += 3
    assert window.average("bytes", "records") == 100


def test_the_largest_value_is_forgotten_with_its_window(window):
    assert math.isnan(window.largest("bytes"))
    window.maximum("bytes", 7)
    window.maximum("bytes", 5)
    assert window.largest("bytes") == 7
    window.roll(WINDOW_MS)
    window.maximum("bytes", 6)
    assert window.largest("bytes") == 7
    window.roll(2 * WINDOW_MS)
    assert window.largest("bytes") == 6


def test_number_and_length_of_the_windows_can_be_chosen():
    window = WindowedTotals(["records"], now_ms=0, windows=SampleWindows(3, 1_000))
    window.totals["records"] += 60
    for end in (1, 2):
        window.roll(end * 1_000)
    assert window.rate("records", now_ms=2_500) == 60 / 2.5
    window.roll(3_000)
    assert window.rate("records", now_ms=3_000) == 0


def test_equal_names_are_equal_keys():
    one, same = (MetricName("byte-rate", "g", {"client-id": "c"}) for _ in range(2))
    other = MetricName("byte-rate", "g", {"client-id": "d"})
    assert {one: 1}[same] == 1
    assert one != other
    assert "byte-rate" in repr(one)
