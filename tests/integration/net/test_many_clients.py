"""200 clients in one process open, work and close; nothing of them stays behind.

The broker is another process, so that every thread, file and object counted here is a client's.
"""

import gc
import os
import threading
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.admin import NewTopic
from tests.support.server_process import ServerProcess

EACH = 50  # of four kinds
TOPIC = "orders"


def test_200_clients_leave_nothing_behind(tmp_path: Path) -> None:
    with ServerProcess("--data-dir", tmp_path) as server:
        servers = server.bootstrap_servers
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 4, 1)])
        use_clients(servers, 1)  # what is loaded once and kept is there from now on
        gc.collect()
        threads, files, known = set(threading.enumerate()), open_files(), objects()
        clients = use_clients(servers, EACH)
        gc.collect()
        assert set(threading.enumerate()) <= threads
        assert open_files() <= files
        assert objects() - known == Counter()  # less is fine: an earlier test's may be gone now
        assert [one() for one in clients if one() is not None] == []


def use_clients(servers: str, each: int) -> list[weakref.ref[object]]:
    """Open `each` clients of each kind at once, use all of them, close them."""
    producers = [KafkaProducer(bootstrap_servers=servers) for _ in range(each)]
    readers = [reader(servers) for _ in range(each)]
    members = [
        KafkaConsumer(TOPIC, bootstrap_servers=servers, group_id=f"group-{number}")
        for number in range(each)
    ]
    admins = [KafkaAdminClient(bootstrap_servers=servers) for _ in range(each)]
    futures = [one.send(TOPIC, b"book", partition=0) for one in producers]
    assert all(one.get(timeout=30).topic == TOPIC for one in futures)
    for one in readers:
        while not one.poll(timeout_ms=1_000):
            pass
    for one in members:
        while not one.assignment():
            one.poll(timeout_ms=100)
    assert all(TOPIC in one.list_topics() for one in admins)
    clients: list[Any] = [*producers, *readers, *members, *admins]
    for client in clients:
        client.close()
    return [weakref.ref(client) for client in clients]


def reader(servers: str) -> KafkaConsumer:
    """A consumer without a group, at the beginning of a partition."""
    consumer = KafkaConsumer(bootstrap_servers=servers)
    partition = TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    return consumer


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def objects() -> Counter[str]:
    """How many objects of the clients' own classes there are, by class."""
    return Counter(
        type(one).__qualname__
        for one in gc.get_objects()
        if str(type(one).__module__).startswith("pyclient.")  # of some C types it is no string
    )
