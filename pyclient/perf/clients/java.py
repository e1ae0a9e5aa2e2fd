"""Apache Kafka's own perf tools as a client: started, and their lines read.

Their CPU time includes the start of the JVM, and they tell four percentiles and no histogram.
"""

import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError, KafkaError
from pyclient.perf.recorder import Window, new_histogram
from pyclient.perf.result import MEGABYTE, PERCENTILES, Result
from pyclient.perf.spec import ProduceSpec

_TOOLS: Final = "org.apache.kafka.tools"
_HEAD: Final = (
    r"(?P<records>\d+)(?: steady state)? records sent, (?P<rate>[\d.]+) records/sec "
    r"\((?P<megabytes>[\d.]+) MB/sec\), "
    r"(?P<avg>[\d.]+) ms avg latency, (?P<max>[\d.]+) ms max latency"
)
_WINDOW: Final = re.compile(_HEAD + r"\.\s*")
_END: Final = re.compile(
    _HEAD + "".join(rf", (?P<p{i}>\d+) ms {re.escape(n)}" for i, (_, n) in enumerate(PERCENTILES))
    + r"\.\s*"
)  # fmt: skip


def classpath(kafka_home: str | None) -> str:
    """Java's class path of a Kafka download, or of a folder of its jars.

    Raises:
        KafkaConfigurationError: there is no Java, or no jar with the tools.
    """
    if shutil.which("java") is None:
        raise KafkaConfigurationError("--client java needs `java` on the PATH")
    if not kafka_home:
        raise KafkaConfigurationError(
            "--client java needs Apache Kafka: unpack its download, and set KAFKA_HOME to it"
        )
    for folder in (Path(kafka_home) / "libs", Path(kafka_home)):
        if any(folder.glob("kafka-tools-[0-9]*.jar")):
            return f"{folder}/*"
    raise KafkaConfigurationError(f"{kafka_home} has no kafka-tools jar: is it a Kafka download?")


def produce(
    options: Mapping[str, Any],
    spec: ProduceSpec,
    kafka_home: str | None,
    on_window: Callable[[Window], None],
) -> Result:
    """Run kafka-producer-perf-test with this load.

    Raises:
        KafkaConfigurationError: the tool cannot do what the load asks for.
    """
    if spec.key_distribution != "none" or spec.compressibility is not None:
        raise KafkaConfigurationError("Java's tool has no keys and no compressibility")
    if spec.arrival != "fixed":
        raise KafkaConfigurationError("Java's tool has fixed rates only: leave out --arrival")
    arguments = ["--topic", spec.topic, "--num-records", f"{spec.records + spec.warm_up}"]
    arguments += ["--throughput", f"{spec.rate or -1:.0f}", "--reporting-interval", "1000"]
    if spec.payload_file is None:
        arguments += ["--record-size", f"{spec.record_size}"]
    else:
        # The tool hands the delimiter to a regular expression.
        arguments += ["--payload-file", spec.payload_file]
        arguments += ["--payload-delimiter", re.escape(spec.payload_delimiter)]
    if spec.warm_up:
        arguments += ["--warmup-records", f"{spec.warm_up}"]
    found: re.Match[str] | None = None
    windows: list[Window] = []
    cpu = _cpu_of_children()
    for line in _run("ProducerPerformance", arguments, options, kafka_home):
        if match := _WINDOW.fullmatch(line):
            start_ms = windows[-1].start_ms + windows[-1].length_ms if windows else 0.0
            windows.append(_window(match, start_ms))
            on_window(windows[-1])
        found = _END.fullmatch(line) or found  # with a warm-up, the last is of the rest
    if found is None:
        raise KafkaError("Java's tool ended without its closing line; standard error says why")
    records, rate = int(found["records"]), float(found["rate"])
    elapsed_ms = records * 1000 / rate if rate else 0.0
    return Result(
        name="java",
        records=records,
        size=round(float(found["megabytes"]) * MEGABYTE * elapsed_ms / 1000),
        elapsed_ms=elapsed_ms,
        average_ms=float(found["avg"]),
        max_ms=float(found["max"]),
        histogram=new_histogram(),
        windows=windows,
        cpu_seconds=_cpu_of_children() - cpu,
        percentiles={at: float(found[f"p{i}"]) for i, (at, _) in enumerate(PERCENTILES)},
    )


def consume(
    options: Mapping[str, Any],
    topic: str,
    records: int,
    timeout_ms: int,
    kafka_home: str | None,
) -> str:
    """Run kafka-consumer-perf-test; its line of figures."""
    arguments = ["--topic", topic, "--num-records", f"{records}", "--timeout", f"{timeout_ms}"]
    arguments += ["--hide-header"]
    lines = [
        line.strip()
        for line in _run("ConsumerPerformance", arguments, options, kafka_home)
        if line.count(",") == 9
    ]
    if not lines:
        raise KafkaError("Java's tool ended without its figures; standard error says why")
    return lines[-1]


def _run(
    tool: str, arguments: Sequence[str], options: Mapping[str, Any], kafka_home: str | None
) -> Iterator[str]:
    classes = classpath(kafka_home)
    with _properties(options) as path:
        command = ["java", "-Xmx512m", "-cp", classes, f"{_TOOLS}.{tool}", *arguments]
        command += ["--bootstrap-server", str(options["bootstrap.servers"])]
        command += ["--command-config", path]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield from process.stdout
            except BaseException:
                process.terminate()
                raise
        if process.returncode:
            raise KafkaError(f"Java's tool failed with exit code {process.returncode}")


@contextmanager
def _properties(options: Mapping[str, Any]) -> Iterator[str]:
    """A file, as options may hold passwords, which a command line shows to everybody."""
    with tempfile.NamedTemporaryFile("w", suffix=".properties", delete=False) as file:
        for name, value in options.items():
            file.write(f"{name}={str(value).replace(chr(92), chr(92) * 2)}\n")
    try:
        yield file.name
    finally:
        os.unlink(file.name)


def _window(match: re.Match[str], start_ms: float) -> Window:
    records, rate = int(match["records"]), float(match["rate"])
    length_ms = records * 1000 / rate if rate else 0.0
    size = round(float(match["megabytes"]) * MEGABYTE * length_ms / 1000)
    return Window(
        start_ms=start_ms, length_ms=length_ms, records=records, size=size, p50_ms=0.0, p99_ms=0.0,
        average_ms=float(match["avg"]), max_ms=float(match["max"]), cpu_share=0.0,
    )  # fmt: skip


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
