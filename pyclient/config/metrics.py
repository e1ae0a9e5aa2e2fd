"""The metrics options; clients without configurable metrics refuse them."""

from pyclient.config.definition import ConfigKey, RefusedKey, at_least

METRICS_KEYS = (
    ConfigKey(
        "metrics.enabled",
        bool,
        True,
        None,
        "Collect metrics. If false, metrics() is empty, and reporters get nothing.",
    ),
    ConfigKey(
        "metrics.num.samples",
        int,
        2,
        at_least(1),
        "The number of sample windows that rates, averages and maxima cover.",
    ),
    ConfigKey(
        "metrics.sample.window.ms", int, 30_000, at_least(1), "The length of a sample window."
    ),
    ConfigKey(
        "metric.reporters",
        list,
        None,
        None,
        "Objects or classes that are notified of every metric: see MetricsReporter.",
    ),
)

_NOT_YET = "only the producer's metrics can be configured yet"

METRICS_REFUSED = (
    RefusedKey("metrics.enabled", _NOT_YET, (True,)),
    RefusedKey("metrics.num.samples", _NOT_YET, (2,)),
    RefusedKey("metrics.sample.window.ms", _NOT_YET, (30_000,)),
    RefusedKey("metric.reporters", _NOT_YET, ([], (), "", None)),
)
