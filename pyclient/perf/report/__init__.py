"""Reports as one HTML page: inline SVG, no scripts, nothing fetched, light and dark.

The charts are plain functions that return SVG text, for any page:

    from pyclient.perf.report import Section, Series, line_chart, page

    chart = line_chart("Throughput", [Series("run 1", [(0, 10), (1, 12)])], y_label="records/s")
    html = page("My run", [Section("Over time", charts=[chart])])

- `bars`: horizontal bars, in groups
- `curves`: lines over an axis, percentile curves, histograms
- `frame`: the plot's frame: axes, grid, legend
- `page`: sections to a page
- `results`: the report of load test results
- `scales`: from values to positions, ticks, short numbers
- `style`: colours and fonts of charts and pages
"""

from pyclient.perf.report.bars import BarGroup, bar_chart
from pyclient.perf.report.curves import (
    Bucket,
    Marker,
    Series,
    histogram_chart,
    line_chart,
    percentile_chart,
)
from pyclient.perf.report.page import Section, page, table
from pyclient.perf.report.scales import short_number
from pyclient.perf.report.style import standalone

__all__ = [
    "BarGroup",
    "Bucket",
    "Marker",
    "Section",
    "Series",
    "bar_chart",
    "histogram_chart",
    "line_chart",
    "page",
    "percentile_chart",
    "short_number",
    "standalone",
    "table",
]
