"""The recorder: windows, weights, and a result that survives JSON."""

import json

import pytest

from pyclient.clock import ManualClock
from pyclient.errors import KafkaConfigurationError
from pyclient.perf import Recorder, Result, window_line


def result(recorder: Recorder) -> Result:
    histogram = recorder.end()
    return Result(
        "run", recorder.records, recorder.size, 2000, recorder.average_ms, recorder.max_ms,
        histogram, recorder.windows,
    )  # fmt: skip


def test_windows_have_their_own_figures_and_the_run_has_all() -> None:
    clock = ManualClock(0)
    recorder = Recorder(clock)
    for latency in range(1, 101):
        recorder.record(latency, 10)
    clock.advance(1000)
    first = recorder.end_window()
    recorder.record(500, 10)
    clock.advance(1000)
    run = result(recorder)
    assert (first.records, first.size, first.max_ms, first.average_ms) == (100, 1000, 100, 50.5)
    assert first.p99_ms == pytest.approx(99, rel=0.01)
    assert [window.records for window in run.windows] == [100, 1]
    assert (run.records, run.size, run.max_ms) == (101, 1010, 500)
    assert recorder.elapsed_ms == 2000
    assert run.percentile_ms(50) == pytest.approx(51, rel=0.01)
    assert window_line(first) == (
        "100 records sent, 100.0 records/sec (0.00 MB/sec), 50.5 ms avg latency, "
        "100.0 ms max latency."
    )


def test_a_sample_stands_for_its_weight() -> None:
    recorder = Recorder(ManualClock(0), weight=10)
    recorder.record(2, 100)
    recorder.record(4, 100)
    run = result(recorder)
    assert (run.records, run.size, run.average_ms) == (20, 2000, 3)


def test_nothing_recorded_is_zero() -> None:
    run = result(Recorder(ManualClock(0)))
    assert run.line().startswith("0 records sent, 0.0 records/sec")
    assert run.max_ms == run.average_ms == run.percentile_ms(99) == 0


def test_a_result_survives_json() -> None:
    clock = ManualClock(0)
    recorder = Recorder(clock)
    for latency in range(1, 1001):
        recorder.record(latency / 10, 7)
    clock.advance(2000)
    run = result(recorder)
    again = Result.from_json(json.loads(json.dumps(run.to_json())))
    assert again.line() == run.line()
    assert again.windows == run.windows


def test_other_json_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="not the result of a load test"):
        Result.from_json({"a": 1})
