"""What a query's progress reports become: text, a picture, a line."""

import io
import json
from types import SimpleNamespace
from typing import Any

from spark_connector import progress
from spark_connector.query_progress import ProgressView, status_line


def report(number: int, *, latest: int = 120) -> dict[str, Any]:
    return {
        "batchId": number,
        "durationMs": {"triggerExecution": 250},
        "sources": [
            {
                "numInputRows": 50,
                "processedRowsPerSecond": 200.0 * number,
                "endOffset": json.dumps({"orders": {"0": 40 + number, "1": 60}, "#id": {}}),
                "latestOffset": {"orders": {"0": latest, "1": 60}},
            }
        ],
    }


def query(*reports: dict[str, Any]) -> Any:
    return SimpleNamespace(name="totals", id="7", recentProgress=reports)


def test_a_terminal_gets_a_table() -> None:
    out = io.StringIO()
    progress(query(report(1), report(2)), file=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "totals: batch 2, 50 rows in 250 ms"
    assert lines[1] == "  rows/s ▄█ 400"
    assert lines[2].split() == ["lag", "██", "78"]
    assert [line.split() for line in lines[4:]] == [
        ["orders-0", "42", "120", "78"],
        ["orders-1", "60", "60", "0"],
    ]


def test_a_notebook_gets_a_picture() -> None:
    shown = ProgressView("<totals>", [report(1), report(2)])._repr_html_()
    assert shown.count("<polyline") == 2
    assert "&lt;totals&gt;" in shown
    assert "<td>orders-0</td><td>42</td><td>120</td><td>78</td>" in shown


def test_a_source_that_is_not_kafka_has_no_lag() -> None:
    other = report(3)
    other["sources"][0] |= {"endOffset": "4", "latestOffset": None}
    assert status_line("q", other) == "q: batch 3, 50 rows, 600 rows/s, lag -, 250 ms"


def test_before_the_first_batch_there_is_nothing_to_show() -> None:
    assert str(ProgressView("q", [])) == status_line("q", None) == "q: no batch yet"
    assert "polyline" in ProgressView("q", [])._repr_html_()
