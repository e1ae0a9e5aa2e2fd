"""A load test of your own: any work at a fixed rate, its latencies, and a page with plots.

Run it as `python docs/examples/load_test.py [HOST:PORT] [REPORT.html]`.
"""

import sys
from pathlib import Path

from pyclient import KafkaProducer
from pyclient.perf import FixedRate, Pacer, Recorder, Result
from pyclient.perf.report.results import results_page

RECORDS, RATE = 1000, 2000


def main(servers: str, report: str) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.partitions_for("load")  # connects, so that the first records do not wait for it
        recorder, pacer = Recorder(), Pacer(FixedRate(RATE))
        for number in range(RECORDS):
            due_ms = pacer.wait()
            producer.send("load", b"record %d" % number).add_callback(
                lambda _metadata, due_ms=due_ms: recorder.record_since(due_ms, 10)
            )
        producer.flush()
        histogram = recorder.end()
    result = Result(
        "send", recorder.records, recorder.size, recorder.elapsed_ms, recorder.average_ms,
        recorder.max_ms, histogram, recorder.windows,
    )  # fmt: skip
    print(result.line())
    Path(report).write_text(results_page("My load test", [result]), encoding="utf-8")


if __name__ == "__main__":
    main(*(sys.argv[1:] + ["localhost:9092", "report.html"][len(sys.argv) - 1 :]))
