"""Spark's own Kafka connector, from Maven Central, to compare with ours.

The jars are kept beside Apache Kafka's, outside the repository, and fetched once. They are taken
without what they depend on: PySpark has the rest.
"""

from pathlib import Path
from typing import Final

from tests.interop.apache_kafka import cached_jars, run_maven

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
    folder = cached_jars(f"spark-kafka-{SPARK_KAFKA_VERSION}", _fetch)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))


def _fetch(folder: Path) -> None:
    for artifact in _ARTIFACTS:
        run_maven(artifact, "copy", folder, f"-Dartifact={artifact}")
