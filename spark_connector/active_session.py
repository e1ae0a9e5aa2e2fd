"""Makes writes work from any Python thread.

Spark looks a Python data source up in the active session of the JVM's thread. Each Python thread
has a JVM thread of its own, and only the one that made the session has an active one. Reads set
it; writes do not, and end in DATA_SOURCE_NOT_FOUND.
"""

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.streaming import DataStreamWriter


def activate_on_write() -> None:
    """Let `save` and `start` make their DataFrame's session active where none is."""
    for writer, name in ((DataFrameWriter, "save"), (DataStreamWriter, "start")):
        method = getattr(writer, name)
        if not hasattr(method, "activates_session"):
            setattr(writer, name, _activating(method))


def _activating(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(writer: Any, *args: Any, **kwargs: Any) -> Any:
        _activate(writer._df.sparkSession)
        return method(writer, *args, **kwargs)

    call.activates_session = True  # type: ignore[attr-defined]
    return call


def _activate(session: SparkSession) -> None:
    sessions = SparkSession._get_j_spark_session_class(session._jvm)
    if not sessions.getActiveSession().isDefined():
        sessions.setActiveSession(session._jsparkSession)
