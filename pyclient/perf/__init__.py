"""Load tests, and the parts to write your own: pacing, recorder, report.

    from pyclient.perf import FixedRate, Pacer, Recorder

    recorder, pacer = Recorder(), Pacer(FixedRate(1000))
    for _ in range(10_000):
        due_ms = pacer.wait()
        do_the_work()
        recorder.record_since(due_ms)  # counts what a stall delayed, too
    print(recorder.end().get_value_at_percentile(99), "us")

- `clients/`: pyclient and its peers, as a load sees them
- `consume`, `produce`: one test each
- `embedded_broker`: the broker of a run that names no cluster; `processes`: starts it
- `ledger`: judges what was read by sequence numbers; `verify`: sends and reads for it
- `pacing`: when records are due
- `payloads`: values and keys
- `recorder`: latencies in HDR histograms, and windows of a second
- `report/`: charts as SVG, and pages of them
- `result`: the figures of a run, as Kafka's line and as JSON
- `runner`: runs jobs in processes; `worker`: what such a process does
- `spec`: a load in plain values
"""

from pyclient.perf.pacing import FixedRate, Pacer, Poisson, Schedule
from pyclient.perf.payloads import generated_values, uniform_keys, values_from_file, zipf_keys
from pyclient.perf.recorder import Recorder, Window
from pyclient.perf.result import Result, window_line

__all__ = [
    "FixedRate",
    "Pacer",
    "Poisson",
    "Recorder",
    "Result",
    "Schedule",
    "Window",
    "generated_values",
    "uniform_keys",
    "values_from_file",
    "window_line",
    "zipf_keys",
]
