"""Spark's own Kafka connector, from Maven Central, to compare with ours.

The jars are kept beside Apache Kafka's, outside the repository, and fetched once. They are taken
without what they depend on: PySpark has the rest.
"""

import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.interop.apache_kafka import FETCH_SECONDS, ApacheKafkaUnavailable, cache, require_tools

SPARK_KAFKA_VERSION: Final = "4.2.0"
# A newer token provider is not to be had everywhere; this one works with PySpark 4.3.
_ARTIFACTS: Final = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_KAFKA_VERSION}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)


def spark_kafka_jars() -> str:
    """The jars, as `spark.jars` wants them.

    Raises:
        ApacheKafkaUnavailable: there is no Java or Maven, or the download failed.
    """
    require_tools()
    folder = cache() / f"spark-kafka-{SPARK_KAFKA_VERSION}"
    if not folder.is_dir():
        _fetch(folder)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))


def _fetch(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        jars = Path(scratch) / "jars"
        for artifact in _ARTIFACTS:
            done = subprocess.run(
                ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}",
                 f"-DoutputDirectory={jars}"],
                cwd=scratch, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                raise ApacheKafkaUnavailable(
                    f"Maven could not fetch {artifact}:\n{done.stdout[-2000:]}"
                )
        with suppress(OSError):  # another run was faster
            jars.rename(folder)
