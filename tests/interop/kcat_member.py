"""A group member that is kcat: it prints the values it reads, and its rebalances."""

import os
import re
import shutil

import pytest

from tests.interop.group_processes import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    WAIT_SECONDS,
    ForeignProcess,
)

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
needs_kcat = pytest.mark.skipif(
    KCAT is None and not os.environ.get("CI"),  # CI installs it, and must not pass without
    reason="kcat is not on the PATH; install it (Debian: apt-get install kcat)",
)
# "rebalanced (...): assigned: a [0], a [1]", or "rebalanced: incremental revoke of 1 ... : a [0]"
_REBALANCED = re.compile(r"% Group \S+ rebalanced\b.*?\b(assign|revok)\w*\b.*: (.*)\n")
_PARTITION = re.compile(r"(\S+) \[(\d+)\]")


class KcatMember(ForeignProcess):
    """Reads by `kcat -G`, and commits every 100 ms what it has printed.

    With a count of records it leaves the group by itself, once it has printed them. By SIGTERM
    kcat 1.7.1 leaves, too, but commits one record that it does not print: it looks at its flag
    between the poll and the output. Seen on Apache Kafka 4.3 as well as here.
    """

    def __init__(
        self,
        name: str,
        bootstrap: str,
        group: str,
        topic: str,
        assignor: str,
        count: int | None = None,
    ) -> None:
        options = {
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            "partition.assignment.strategy": assignor,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": REBALANCE_MS,
        }
        # Its thread prints both, so a line of one is never within a line of the other.
        both_outputs = ("sh", "-c", 'exec "$0" "$@" 2>&1')
        command = [*both_outputs, str(KCAT), "-b", bootstrap, "-u", "-f", "%s\\n"]
        for key, value in options.items():
            command += ["-X", f"{key}={value}"]
        if count is not None:
            command += ["-c", str(count)]
        super().__init__(name, [*command, "-G", group, topic])

    def wait_until_left(self) -> None:
        """Wait until it has printed its count of records, and has left."""
        assert self.process.wait(WAIT_SECONDS) == 0, self.errors()
        self._end()

    def take(self, line: str) -> None:
        """Note one line; the last one of a killed process may be cut off."""
        rebalanced = _REBALANCED.fullmatch(line)
        if rebalanced is not None:
            found = _PARTITION.findall(rebalanced[2])
            partitions = {(topic, int(index)) for topic, index in found}
            if rebalanced[1] == "assign":
                self.assigned |= partitions
            else:
                self.assigned -= partitions
        elif line.startswith("% ERROR"):
            self.failure = line
        elif not line.startswith("%") and line.endswith("\n"):
            self.values.append(line[:-1])
