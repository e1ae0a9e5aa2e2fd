"""Calls for users: finish a write whose driver died, settle a batch by hand.

Both take the options of the sink, as they were given to Spark.
"""

from collections.abc import Mapping
from typing import Literal

from spark_connector.exactly_once.decisions import State
from spark_connector.exactly_once.driver import finish_last, settle_last
from spark_connector.exactly_once.names import stream_key
from spark_connector.exactly_once.sink import ExactlyOnceSink, parse_exactly_once
from spark_connector.sink_options import parse_sink_options

Ending = Literal["done", "void"]


def finish(options: Mapping[str, str], query_id: str | None = None) -> tuple[int, Ending] | None:
    """Finish the last batch of a job or a query that died inside its commit.

    Do not call it while the job or the query runs: its driver would be fenced.

    Args:
        options: of the sink.
        query_id: of a stream, as in the checkpoint's file `metadata`; None for a batch write.

    Returns:
        The number of the last batch that was decided, and `done` if its rows are visible or `void`
        if none is; None if there was no batch yet.

    Raises:
        PartialBatchError: only some of its rows are visible; `settle` it.
    """
    sink, key = _place(options, query_id)
    last = finish_last(sink, key)
    return None if last is None else (last.number, "void" if last.state is State.VOID else "done")


def settle(
    options: Mapping[str, str], number: int, ending: Ending, query_id: str | None = None
) -> None:
    """Say how a batch ended that was written in part.

    Args:
        options: of the sink.
        number: of the batch.
        ending: `done` to go on with the next batch, so that the rows of the lost tasks stay
            missing; `void` to write the batch again, so that those of the others appear twice.
        query_id: of a stream, as in the checkpoint's file `metadata`; None for a batch write.

    Raises:
        ValueError: the batch does not wait for it.
    """
    sink, key = _place(options, query_id)
    settle_last(sink, key, number, State(ending))


def _place(options: Mapping[str, str], query_id: str | None) -> tuple[ExactlyOnceSink, str]:
    given = {**options, "exactlyOnce": "true"}
    sink = parse_exactly_once(given, parse_sink_options(given), streaming=query_id is not None)
    assert sink is not None
    return sink, sink.prefix if query_id is None else stream_key(sink.prefix, query_id)
