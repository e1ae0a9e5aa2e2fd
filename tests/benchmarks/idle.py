"""What an idle client costs, as a share of one core: `python -m tests.benchmarks.idle`.

Each client is alone in a process of its own: it connects, does one thing, and then has nothing to
do for a while. The CPU time of that while is what counts. All of them idle beside each other, ours
and kafka-python's; that they hardly disturb each other is what is being measured.
"""

import subprocess
import sys
import tempfile

from tests.support.server_process import ROOT, ServerProcess

SECONDS = 20
BAR_PERCENT = 0.2

_PROGRAM = """
import sys, time
from {library} import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

def producer():
    client = KafkaProducer(bootstrap_servers={servers!r})
    client.send("orders", b"book").get(timeout=10)
    return client

def reader():
    client = KafkaConsumer(bootstrap_servers={servers!r})
    client.assign([TopicPartition("orders", 0)])
    client.poll(timeout_ms=1000)
    return client

def member():
    client = KafkaConsumer("orders", bootstrap_servers={servers!r}, group_id="{library}")
    while not client.assignment():
        client.poll(timeout_ms=1000)
    return client

def admin():
    client = KafkaAdminClient(bootstrap_servers={servers!r})
    client.list_topics()
    return client

client = {kind}()
time.sleep(2)
before = time.process_time()
if {kind} in (reader, member):
    client.poll(timeout_ms={seconds} * 1000)
else:
    time.sleep({seconds})
print(time.process_time() - before)
"""
KINDS = {
    "producer": "producer",
    "reader": "consumer of one partition, polling",
    "member": "consumer in a group, polling",
    "admin": "admin client",
}


def main() -> bool:
    """Measure, print a table; whether every bar was reached."""
    with tempfile.TemporaryDirectory() as folder, ServerProcess("--data-dir", folder) as server:
        _start(server, "pyclient", "producer", seconds=0).communicate()  # makes the topic
        running = {
            (kind, library): _start(server, library, kind)
            for kind in KINDS
            for library in ("pyclient", "kafka")
        }
        percent = {
            key: 100 * float(process.communicate()[0]) / SECONDS for key, process in running.items()
        }
    width = max(map(len, KINDS.values()))
    print(f"\nIdle clients, share of a core\n{'':{width}}  {'ours':>7}  {'kafka-python':>12}  bar")
    passed = True
    for kind, what in KINDS.items():
        ours, peer = percent[kind, "pyclient"], percent[kind, "kafka"]
        reached = ours < BAR_PERCENT
        passed = passed and reached
        print(
            f"{what:{width}}  {ours:6.3f}%  {peer:11.3f}%  {BAR_PERCENT}%"
            f"{'' if reached else '  MISSED'}"
        )
    return passed


def _start(
    server: ServerProcess, library: str, kind: str, seconds: float = SECONDS
) -> subprocess.Popen[str]:
    program = _PROGRAM.format(
        library=library, kind=kind, servers=server.bootstrap_servers, seconds=seconds
    )
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
