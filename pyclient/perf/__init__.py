"""Load tests whose reports look like those of Kafka's own perf tools.

- `produce`, `consume`: one test each
- `latencies`: averages and percentiles
- `report/`: charts as SVG, and pages of them
"""
