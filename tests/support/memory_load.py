"""A producer at a steady rate in a process of its own, whose memory can be looked at from outside.

`python -m tests.support.memory_load SERVERS TOPIC BYTES_PER_SECOND OPTIONS` sends until its input
is closed. It writes a line of JSON each second, and a last one when all is acknowledged.
"""

import json
import os
import sys
import threading
import time
from typing import Any

from pyclient import KafkaProducer
from tests.support.producer_load import payload

VALUE_BYTES = 1_000
TICK_SECONDS = 0.01
FLUSH_SECONDS = 120


def figures(producer: KafkaProducer) -> dict[str, Any]:
    """What the test wants to know."""
    shown = producer.metrics()["producer-metrics"]
    return {
        "sent": shown["record-send-total"],
        "errors": shown["record-error-total"],
        "waited_s": shown["bufferpool-wait-time-ns-total"] / 1e9,
        "held": shown["buffer-total-bytes"] - shown["buffer-available-bytes"],
    }


def report(producer: KafkaProducer, ended: threading.Event) -> None:
    """Once a second, also while `send` waits for memory."""
    while not ended.wait(1):
        print(json.dumps(figures(producer)), flush=True)


def main(servers: str, topic: str, bytes_per_second: int, options: dict[str, Any]) -> None:
    """Send until told to end."""
    values = payload(2_000, VALUE_BYTES, keyed=False).values
    per_tick = int(bytes_per_second * TICK_SECONDS / VALUE_BYTES)
    ended = threading.Event()

    def end_when_told() -> None:
        os.read(0, 1)
        ended.set()

    threading.Thread(target=end_when_told, daemon=True).start()
    with KafkaProducer(bootstrap_servers=servers, **options) as producer:
        reporter = threading.Thread(target=report, args=(producer, ended))
        reporter.start()
        due = time.monotonic()
        number = 0
        while not ended.is_set():
            for _ in range(per_tick):
                producer.send(topic, values[number % len(values)])
                number += 1
            due += TICK_SECONDS
            now = time.monotonic()
            # What a stall has held up is not made up for: the rate is the wish, not the sum.
            due = max(due, now)
            time.sleep(due - now)
        reporter.join()
        producer.flush(timeout=FLUSH_SECONDS)
        print(json.dumps({**figures(producer), "last": True}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
