"""The page of `make bench` about growing numbers, from fixed figures."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from tests.benchmarks.scaling import SWEEPS, Point, scaling_page

POINTS = {
    sweep.name: [
        Point(size, 0.25 * (at + 1), 2_000_000 / (at + 1)) for at, size in enumerate(sweep.sizes)
    ]
    for sweep in SWEEPS
}


def test_the_page_has_a_table_and_two_plots_for_each_number_that_grows():
    html = scaling_page(POINTS, "load 0.1")
    charts = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(charts) == 2 * len(SWEEPS)
    for sweep in SWEEPS:
        assert f"<h2>{sweep.title}</h2>" in html
    assert "<td>1,000</td><td>1.000</td><td>4.00x</td><td>500k</td><td>0.25x</td>" in html
    assert "load 0.1" in html


def test_sizes_lie_on_a_logarithmic_axis_in_every_plot():
    html = scaling_page({"produce-partitions": POINTS["produce-partitions"]}, "")
    for chart in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        dots = ElementTree.fromstring(chart).findall(".//{*}circle")
        places = [float(dot.attrib["cx"]) for dot in dots]
        steps = [after - before for before, after in pairwise(places)]
        assert len(places) == 4
        assert max(steps) - min(steps) < 0.5


def test_the_page_needs_no_other_file():
    html = scaling_page(POINTS, "")
    assert not re.search(r"<script|<link|<img|url\(|\ssrc=|@import", html)
    assert set(re.findall(r"https?://[^\"']+", html)) == {"http://www.w3.org/2000/svg"}


def test_what_was_not_measured_is_left_out():
    html = scaling_page({"threads": POINTS["threads"]}, "")
    assert html.count("<section>") == 1
