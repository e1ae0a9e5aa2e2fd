"""Checks the Python of the executors: the right version, with this package."""

import logging
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_MEND = (
    "Install kafka-pyclient[spark] for the Python that runs there and name that Python by "
    "PYSPARK_PYTHON or spark.pyspark.python, or send a packed environment along "
    "(spark-submit --archives environment.tar.gz#environment with "
    "PYSPARK_PYTHON=./environment/bin/python)"
)


class ExecutorEnvironmentError(RuntimeError):
    """Executors run a Python that cannot use the connector."""


def check_executors(spark: "SparkSession") -> None:
    """Import the connector in a task for each core, and tell what is missing.

    An executor that starts later, or that got no task, is not seen.

    Raises:
        ExecutorEnvironmentError: a task failed to; says how to mend it.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import udf

    try:
        # Not mapInArrow, which needs pandas too.
        told = udf(_probe(), "host string, problem string, slow string", useArrow=False)("id")
        found = spark.range(0, 256).select(told.alias("told")).select("told.*").distinct().collect()
    except PySparkException as error:
        text = str(error)
        if "PYTHON_VERSION_MISMATCH" not in text and "ModuleNotFoundError" not in text:
            raise
        line = next(one for one in text.splitlines() if "MISMATCH" in one or "NotFound" in one)
        raise ExecutorEnvironmentError(
            f"executors do not run this Python ({sys.version.split()[0]}) with this package: "
            f"{line.strip()}. {_MEND}"
        ) from None
    problems = sorted({f"{row.host}: {row.problem}" for row in found if row.problem})
    if problems:
        raise ExecutorEnvironmentError(
            f"executors cannot use the connector: {'; '.join(problems)}. {_MEND}"
        )
    slow = sorted({f"{row.host}: {row.slow}" for row in found if row.slow})
    if slow:
        log.warning("executors run the connector without its compiled modules: %s", "; ".join(slow))


def _probe() -> Any:
    # A nested function: it is sent by value, for executors may lack this module.
    def probe(_: int) -> tuple[str, str | None, str | None]:
        import platform
        import sys

        try:
            import pyclient
            import spark_connector.data_source  # noqa: F401
        except ImportError as error:
            return platform.node(), f"{sys.executable}: {error}", None
        return platform.node(), None, None if pyclient.NATIVE else pyclient.NATIVE_REASON

    return probe
