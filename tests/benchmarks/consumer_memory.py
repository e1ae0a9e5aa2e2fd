"""A consumer of 10,000 partitions: `python -m tests.benchmarks.consumer_memory`.

Each client runs in a process of its own: it assigns all partitions of a topic, reads the record
that is in each of them, and waits for more. What its resident memory has grown by since it was
connected is counted, and the CPU it uses while it waits.
"""

import json
import subprocess
import sys
import tempfile

from confluent_kafka import Producer

from tests.support.broker_load import create_topic
from tests.support.server_process import ROOT, ServerProcess

PARTITIONS = 10_000
IDLE_SECONDS = 10
BAR_MB = 64

_COMMON = """
import json, time
def resident_mb():
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
def report(before_mb, after_mb, idle_seconds):
    print(json.dumps([after_mb - before_mb, 100 * idle_seconds / {seconds}]))
"""
_KAFKA_PYTHON = """
from {library} import KafkaConsumer, TopicPartition
consumer = KafkaConsumer(bootstrap_servers={servers!r}, auto_offset_reset="earliest")
consumer.topics()
before_mb = resident_mb()
consumer.assign([TopicPartition("many", index) for index in range({partitions})])
found = 0
while found < {partitions}:
    found += sum(map(len, consumer.poll(timeout_ms=1000).values()))
"""
_IDLE = """
after_mb = resident_mb()
before = time.process_time()
consumer.poll({wait})
report(before_mb, after_mb, time.process_time() - before)
"""
_CONFLUENT = """
from confluent_kafka import Consumer, TopicPartition, OFFSET_BEGINNING
consumer = Consumer({{"bootstrap.servers": {servers!r}, "group.id": "memory"}})
consumer.list_topics()
before_mb = resident_mb()
consumer.assign([TopicPartition("many", index, OFFSET_BEGINNING) for index in range({partitions})])
found = 0
while found < {partitions}:
    found += len(consumer.consume(500, 1.0))
"""
PROGRAMS = {
    "ours": (_KAFKA_PYTHON, "pyclient", "timeout_ms={seconds}_000"),
    "confluent-kafka": (_CONFLUENT, "confluent_kafka", "{seconds}"),
    "kafka-python": (_KAFKA_PYTHON, "kafka", "timeout_ms={seconds}_000"),
}


def measure(server: ServerProcess, client: str) -> tuple[float, float]:
    """What one client's memory has grown by, in MB, and its share of a core while it waits."""
    body, library, wait = PROGRAMS[client]
    program = (_COMMON + body + _IDLE).format(
        library=library,
        servers=server.bootstrap_servers,
        partitions=PARTITIONS,
        seconds=IDLE_SECONDS,
        wait=wait.format(seconds=IDLE_SECONDS),
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    grown_mb, idle_percent = json.loads(done.stdout)
    return grown_mb, idle_percent


def main() -> bool:
    """Measure, print a table; whether the bar was reached."""
    with tempfile.TemporaryDirectory() as folder, ServerProcess("--data-dir", folder) as server:
        create_topic(server.bootstrap_servers, "many", PARTITIONS)
        producer = Producer({"bootstrap.servers": server.bootstrap_servers})
        for index in range(PARTITIONS):
            producer.produce("many", b"%d" % index, partition=index)
            producer.poll(0)
        assert producer.flush(60) == 0
        found = {client: measure(server, client) for client in PROGRAMS}
    print(f"\nA consumer of {PARTITIONS:,} partitions\n{'':16}  memory  idle CPU")
    for client, (grown_mb, idle_percent) in found.items():
        print(f"{client:16}  {grown_mb:3.0f} MB  {idle_percent:5.2f} %")
    reached = found["ours"][0] <= BAR_MB
    print(f"bar: {BAR_MB} MB{'' if reached else '  MISSED'}")
    return reached


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
