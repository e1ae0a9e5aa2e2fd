"""Charts are well-formed SVG: what is given is drawn, within the view box."""

import math
import xml.etree.ElementTree as ET

import pytest

from pyclient.perf.report import (
    BarGroup,
    Bucket,
    Marker,
    Section,
    Series,
    bar_chart,
    histogram_chart,
    line_chart,
    page,
    percentile_chart,
    short_number,
    standalone,
    table,
)
from pyclient.perf.report.scales import linear, logarithmic, ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: str, element: str) -> list[ET.Element]:
    return list(ET.fromstring(chart).iter(f"{SVG}{element}"))


def points(chart: str) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (one.split(",") for one in each.attrib["points"].split())]
        for each in drawn(chart, "polyline")
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.25, "0.25"), (12.54, "12.5"), (999.6, "1k"), (1500, "1.5k"),
        (2e6, "2M"), (0.00123, "0.00123"), (-1500, "-1.5k"), (100, "100"),
    ],
)  # fmt: skip
def test_short_numbers_have_three_digits(value: float, text: str) -> None:
    assert short_number(value) == text


def test_a_linear_scale_has_round_ends_and_ticks() -> None:
    scale = linear([3, 97], 0, 100)
    assert (scale.low, scale.high) == (0, 100)
    assert ticks(scale) == [0, 20, 40, 60, 80, 100]


def test_a_logarithmic_scale_has_few_ticks_over_many_decades() -> None:
    found = ticks(logarithmic([0.001, 1e9], 0, 100))
    assert 3 <= len(found) <= 8
    assert all(math.log10(value) == pytest.approx(round(math.log10(value))) for value in found)


@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [-3.0, -1.0]])
def test_scales_of_odd_values_do_not_fail(values: list[float]) -> None:
    assert ticks(linear(values, 0, 100))
    assert ticks(logarithmic(values, 0, 100))


def test_each_series_is_a_line_within_the_frame() -> None:
    series = [Series("a", [(0, 1), (1, 5)]), Series("b", [(0, 2), (1, 3)])]
    chart = line_chart("Throughput", series, y_label="records/s")
    first, second = points(chart)
    assert len(first) == len(second) == 2
    assert first[1][1] < second[1][1]  # 5 is above 3
    assert all(0 <= x <= 640 and 0 <= y <= 300 for x, y in first + second)
    texts = {each.text for each in drawn(chart, "text")}
    assert {"Throughput", "records/s", "a", "b"} <= texts


def test_a_long_series_is_thinned_and_keeps_its_peak() -> None:
    values = [(float(x), 1.0) for x in range(10_000)]
    values[7_777] = (7_777.0, 50.0)
    chart = line_chart("t", [Series("a", values)])
    (line,) = points(chart)
    assert len(line) <= 400
    assert min(y for _, y in line) < 100


def test_percentiles_take_the_same_room_for_each_nine() -> None:
    chart = percentile_chart("p", [Series("a", [(0, 1), (90, 2), (99, 4), (99.9, 8), (100, 9)])])
    ((x0, _), (x1, _), (x2, _), (x3, _), (x4, _)) = points(chart)[0]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert x4 == x3  # the maximum is at the right edge


def test_a_histogram_has_a_column_a_bucket_and_its_markers() -> None:
    buckets = [Bucket(1, 2, 10), Bucket(2, 4, 20)]
    chart = histogram_chart("h", buckets, markers=[Marker(1.5, "50th"), Marker(3.9, "99th")])
    low, high = drawn(chart, "rect")
    assert float(high.attrib["height"]) == pytest.approx(2 * float(low.attrib["height"]), abs=0.2)
    assert {"50th", "99th"} <= {each.text for each in drawn(chart, "text")}


def test_bars_are_as_long_as_their_values_and_a_missing_one_says_so() -> None:
    chart = bar_chart("b", [BarGroup("", [("ours", 30.0), ("theirs", 10.0), ("java", None)])])
    ours, theirs = drawn(chart, "rect")
    assert float(ours.attrib["width"]) == pytest.approx(3 * float(theirs.attrib["width"]), rel=0.01)
    assert "not measured" in {each.text for each in drawn(chart, "text")}


def test_names_are_escaped_everywhere() -> None:
    name = '<q>&"'
    charts = [
        line_chart(name, [Series(name, [(0, 1)]), Series("b", [(0, 1)])], y_label=name),
        bar_chart(name, [BarGroup(name, [(name, 1.0)])]),
    ]
    text = page(name, [Section(name, name, [(name, name)], [table([name], [[name]])], charts)])
    assert "<q>" not in text
    for chart in charts:
        ET.fromstring(chart)


def test_a_page_needs_nothing_from_outside() -> None:
    text = page("t", [Section("s", charts=[line_chart("c", [Series("a", [(0, 1)])])])])
    assert "http://www.w3.org/2000/svg" in text  # a name, not an address
    without = text.replace("http://www.w3.org/2000/svg", "")
    assert not [word for word in ("http", "src=", "href=", "url(", "@import") if word in without]
    assert "prefers-color-scheme:dark" in text


def test_a_chart_alone_brings_its_colours() -> None:
    ET.fromstring(standalone(bar_chart("b", [BarGroup("", [("a", 1.0)])])).partition("\n")[2])
    assert "--s0:" in standalone(bar_chart("b", [BarGroup("", [("a", 1.0)])]))
