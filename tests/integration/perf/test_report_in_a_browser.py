"""The report in headless Chromium: every plot is drawn, and nothing is fetched."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pyclient.clock import ManualClock
from pyclient.perf import Recorder, Result
from pyclient.perf.report.results import results_page

pytestmark = pytest.mark.browser

# Asks the browser itself, after layout, how large each drawn element is.
MEASURE = """<script>
const boxes = selector => [...document.querySelectorAll(selector)].map(e => {
  const box = e.getBoundingClientRect(); return [box.width, box.height]});
const overflows = [...document.querySelectorAll('svg.chart')].filter(svg => {
  const outer = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].some(t => {
    const box = t.getBoundingClientRect();
    return box.right > outer.right + 1 || box.left < outer.left - 1})}).length;
const out = document.createElement('pre'); out.id = 'measured';
out.textContent = JSON.stringify({charts: boxes('svg.chart'), curves: boxes('polyline'),
  columns: boxes('rect'), overflows, fetched: performance.getEntriesByType('resource').length,
  ink: getComputedStyle(document.querySelector('.curve')).stroke});
document.body.append(out);
</script>"""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def run(name: str) -> Result:
    clock = ManualClock(0)
    recorder = Recorder(clock)
    for second in range(5):
        for number in range(1000):
            recorder.record(1 + number % 50 / 10 + second, 100)
        clock.advance(1000)
        recorder.end_window()
    histogram = recorder.end()
    return Result(
        name, recorder.records, recorder.size, 5000, recorder.average_ms, recorder.max_ms,
        histogram, recorder.windows[:5],
    )  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_plot_is_drawn_and_nothing_is_fetched(
    chromium: str, tmp_path: Path, scheme: str
) -> None:
    text = results_page("Compared", [run("first"), run("second")])
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", MEASURE + "</body>"))
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1240,1600"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    if scheme == "dark":
        command.append("--blink-settings=preferredColorScheme=0")
    done = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=100, check=True
    )
    found = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    measured = json.loads(found[1])
    assert len(measured["charts"]) == 9
    assert all(width > 300 and height > 60 for width, height in measured["charts"])
    assert len(measured["curves"]) == 10  # two runs in each of five plots
    assert all(width > 100 for width, _ in measured["curves"])
    assert len(measured["columns"]) > 20
    assert all(width > 0 for width, _ in measured["columns"])
    assert measured["overflows"] == 0
    assert measured["fetched"] == 0
    assert measured["ink"] == {"light": "rgb(37, 99, 235)", "dark": "rgb(110, 168, 254)"}[scheme]
