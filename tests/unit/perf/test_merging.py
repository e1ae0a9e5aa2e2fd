"""Figures of several processes as one run, percentiles included."""

import pytest

from pyclient.clock import ManualClock
from pyclient.errors import KafkaConfigurationError
from pyclient.perf import Recorder, Result
from pyclient.perf.result import comparison, merged_results, window_from_json, window_to_json
from pyclient.perf.spec import ProduceSpec


def run(latencies: range, seconds: int = 1) -> Result:
    clock = ManualClock(0)
    recorder = Recorder(clock)
    for latency in latencies:
        recorder.record(latency, 10)
    for _ in range(seconds - 1):
        clock.advance(1000)
        recorder.end_window()
    clock.advance(1000)
    histogram = recorder.end()
    return Result(
        "run", recorder.records, recorder.size, seconds * 1000, recorder.average_ms,
        recorder.max_ms, histogram, recorder.windows, cpu_seconds=0.001,
    )  # fmt: skip


def test_results_add_up_and_percentiles_are_those_of_all_records() -> None:
    merged = merged_results([run(range(1, 101)), run(range(101, 201), seconds=2)])
    assert (merged.records, merged.size, merged.elapsed_ms) == (200, 2000, 2000)
    assert (merged.average_ms, merged.max_ms) == (100.5, 200)
    assert merged.percentile_ms(50) == pytest.approx(100, rel=0.01)
    assert [window.records for window in merged.windows] == [200, 0]
    assert merged.windows[0].p99_ms == pytest.approx(198, rel=0.01)
    assert merged.cpu_seconds == 0.002


def test_a_window_survives_json_with_its_histogram() -> None:
    window = run(range(1, 101)).windows[0]
    again = window_from_json(window_to_json(window))
    assert again == window
    assert again.histogram.get_value_at_percentile(50) == pytest.approx(50_000, rel=0.01)


def test_a_comparison_has_a_row_for_each_run() -> None:
    head, row = comparison([run(range(1, 101))])
    cells = dict(zip(head, row, strict=True))
    assert cells["records/s"] == "100"
    assert cells["CPU us/record"] == "10.00"


@pytest.mark.parametrize("processes", [1, 3])
def test_processes_share_a_load_in_turn(processes: int) -> None:
    spec = ProduceSpec("t", 100, rate=100, warm_up=10)
    loads = [spec.load(number, processes) for number in range(processes)]
    assert sum(load.records for load in loads) == 100
    assert sum(load.warm_up for load in loads) == 10
    due = sorted(
        due for load in loads for due, _ in zip(load.schedule, range(load.records), strict=False)
    )
    assert due == pytest.approx([number * 10 for number in range(100)])


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="positive number, not 0"):
        ProduceSpec("t", 1, rate=0).load()
