"""Latencies: averages and percentiles by hand."""

from pyclient.perf.latencies import Latencies


def test_percentiles_are_values_that_so_many_did_not_exceed() -> None:
    latencies = Latencies()
    for number in range(1000, 0, -1):
        latencies.record(number)
    assert latencies.average_ms == 500.5
    assert latencies.max_ms == 1000
    assert latencies.percentiles() == (
        "501.00 ms 50th, 951.00 ms 95th, 991.00 ms 99th, 1000.00 ms 99.9th"
    )


def test_nothing_recorded_is_zero() -> None:
    assert Latencies().average_ms == Latencies().max_ms == Latencies().percentile(0.5) == 0
