"""Apache Kafka for tests: its jars from Maven Central, one KRaft node, its command-line tools.

The jars are kept outside the repository (`KAFKA_PYCLIENT_CACHE`, by default below the user's
cache folder) and fetched once. Where Java, Maven or the jars can't be had, `unavailable()`
says why; CI sets `CI=true`, and there the reason is a failure instead of a skip.
"""

import base64
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from broker_stub.testing.tls import TlsCertificates

KAFKA_VERSION: Final = "4.3.0"
START_SECONDS: Final = 60
FETCH_SECONDS: Final = 300

_POM: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>kafka-jars</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""


class ApacheKafkaUnavailable(Exception):
    """Why Apache Kafka can't run here, and what to do about it."""


def jars() -> Path:
    """The folder with Apache Kafka's jars, fetched if need be.

    Raises:
        ApacheKafkaUnavailable: there is no Java or Maven, or the download failed.
    """
    return cached_jars(f"kafka-{KAFKA_VERSION}", _fetch_jars)


def cached_jars(name: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache; where there is none, `fetch` fills one."""
    _require_tools()
    folder = cache() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Fetched beside its place and renamed: a run that was cut off leaves no half a folder.
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            fetched = Path(scratch) / "jars"
            fetch(fetched)
            with suppress(OSError):  # another run was faster
                fetched.rename(folder)
    return folder


def _require_tools() -> None:
    """Raise ApacheKafkaUnavailable where Java or Maven is missing."""
    for program, package in (("java", "openjdk-17-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise ApacheKafkaUnavailable(
                f"`{program}` is not on the PATH; install it (Debian: apt-get install {package})"
            )


def cache() -> Path:
    """The folder for what is fetched once."""
    home = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return Path(os.environ.get("KAFKA_PYCLIENT_CACHE", f"{home}/kafka-pyclient"))


def _fetch_jars(folder: Path) -> None:
    (folder.parent / "pom.xml").write_text(_POM)
    run_maven(f"Apache Kafka {KAFKA_VERSION}", "copy-dependencies", folder)


def run_maven(what: str, goal: str, folder: Path, *options: str) -> None:
    """Have Maven's dependency plugin put jars into a folder, by the `pom.xml` beside it, if any.

    Raises:
        ApacheKafkaUnavailable: it could not.
    """
    done = subprocess.run(
        ["mvn", "-q", "-B", f"dependency:{goal}", f"-DoutputDirectory={folder}", *options],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=FETCH_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ApacheKafkaUnavailable(f"Maven could not fetch {what}:\n{done.stdout[-2000:]}")


def run_tool(main_class: str, arguments: Iterable[str], timeout: float = 120) -> str:
    """Run one of Apache Kafka's command-line tools, such as `kafka.tools.StorageTool`.

    All that it printed: tools that end well tell of trouble on standard error, too.
    """
    done = run_program(main_class, arguments, timeout)
    return done.stdout + done.stderr


def run_program(
    main_class: str, arguments: Iterable[str], timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """The same, with its two outputs apart."""
    command = ["java", "-Xmx512m", "-cp", f"{jars()}/*", main_class, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{main_class} failed:\n{done.stdout}\n{done.stderr}")
    return done


class ApacheKafka:
    """One running node. `bootstrap_servers` is where it listens.

    With certificates it listens for TLS too: at `tls_servers`, and at `strict_tls_servers` for
    clients that have a certificate.
    """

    def __init__(
        self,
        folder: Path,
        config: dict[str, str],
        jvm: Sequence[str] = ("-Xmx512m",),
        certificates: TlsCertificates | None = None,
        features: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self._features = features
        self._certificates = certificates
        self._tls_port, self._strict_tls_port = _free_port(), _free_port()
        self._jvm = jvm
        self.port = _free_port()
        self._controller_port = _free_port()
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Its address, as clients want it."""
        return f"127.0.0.1:{self.port}"

    @property
    def tls_servers(self) -> str:
        """Its address for clients with TLS."""
        return f"127.0.0.1:{self._tls_port}"

    @property
    def strict_tls_servers(self) -> str:
        """Its address for clients with a certificate of their own."""
        return f"127.0.0.1:{self._strict_tls_port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Format the folder if it is new, start the node, and wait until it answers."""
        self.format()
        self.launch()
        self._wait_until_it_answers()

    def format(self) -> None:
        """Make the folder, if it is new."""
        properties = self.folder / "server.properties"
        if not properties.exists():
            properties.write_text("".join(f"{k}={v}\n" for k, v in self._properties().items()))
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            # In one argument: an id may begin with a dash.
            format_arguments = ["format", f"--cluster-id={cluster_id}", "-c", str(properties)]
            for feature in self._features:
                format_arguments += ["--feature", feature]
            run_tool("kafka.tools.StorageTool", format_arguments)

    def _cluster_id(self) -> str:
        """The id in the `meta.properties` of its first folder."""
        folder = self._properties()["log.dirs"].split(",")[0]
        lines = Path(folder, "meta.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))

    def launch(self) -> None:
        """Start the node, and wait for nothing."""
        properties = self.folder / "server.properties"
        with (self.folder / "server.log").open("ab") as output:
            self._process = subprocess.Popen(
                ["java", *self._jvm, "-cp", f"{jars()}/*", "kafka.Kafka", str(properties)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _tls_properties(self, plain: dict[str, str]) -> dict[str, str]:
        if self._certificates is None:
            return {}
        listeners = f"SSL://127.0.0.1:{self._tls_port},STRICT://127.0.0.1:{self._strict_tls_port}"
        protocols = plain["listener.security.protocol.map"]
        return {
            "listeners": f"{plain['listeners']},{listeners}",
            "advertised.listeners": f"{plain['advertised.listeners']},{listeners}",
            "listener.security.protocol.map": f"{protocols},SSL:SSL,STRICT:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._certificates.broker_file,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._certificates.ca_file,
            "listener.name.strict.ssl.client.auth": "required",
        }

    def _properties(self) -> dict[str, str]:
        plain = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},"
            f"CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "5",
            "group.initial.rebalance.delay.ms": "0",
        }
        return {**plain, **self._tls_properties(plain), **self._config}

    def _wait_until_it_answers(self) -> None:
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with suppress(KafkaError, OSError):
                admin = KafkaAdminClient(
                    bootstrap_servers=self.bootstrap_servers, bootstrap_timeout_ms=2000
                )
                with closing(admin):
                    answers = admin.describe_cluster()["cluster_id"]
                if answers == self._cluster_id():
                    return
        log = (self.folder / "server.log").read_text()[-3000:]
        self.stop()
        raise ApacheKafkaUnavailable(f"Apache Kafka did not start:\n{log}")

    def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def stop(self) -> None:
        """Stop it cleanly, or by force if it takes too long."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=10)
        self._process = None


@contextmanager
def apache_kafka(
    folder: Path,
    config: dict[str, str] | None = None,
    certificates: TlsCertificates | None = None,
    features: Sequence[str] = (),
) -> Iterator[ApacheKafka]:
    """A fresh node in `folder` for the length of a block.

    `features` are levels that differ from the release's, as in `transaction.version=1`.
    """
    node = ApacheKafka(folder, config or {}, certificates=certificates, features=features)
    node.start()
    try:
        yield node
    finally:
        node.stop()


def _free_port() -> int:
    """A free port below those that the system itself hands out.

    The node binds it seconds later. A port that the system hands out may belong to another test's
    broker by then, and clients would talk to that one.
    """
    while True:
        port = random.randrange(16_384, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
