"""Options of a client's figures, and their refusal by clients that do not have them yet."""

from pyclient.config.definition import ConfigKey, RefusedKey, at_least

METRICS_KEYS = (
    ConfigKey(
        "metrics.enabled",
        bool,
        True,
        None,
        "Keep figures. Without them metrics() is empty, and reporters are told nothing.",
    ),
    ConfigKey(
        "metrics.num.samples",
        int,
        2,
        at_least(1),
        "Rates, averages and maxima are about so many of the last sample windows.",
    ),
    ConfigKey("metrics.sample.window.ms", int, 30_000, at_least(1), "How long a sample window is."),
    ConfigKey(
        "metric.reporters",
        list,
        None,
        None,
        "Objects or classes that are told of every figure there is: see MetricsReporter.",
    ),
)

_NOT_YET = "only the producer's figures can be configured yet"

METRICS_REFUSED = (
    RefusedKey("metrics.enabled", _NOT_YET, (True,)),
    RefusedKey("metrics.num.samples", _NOT_YET, (2,)),
    RefusedKey("metrics.sample.window.ms", _NOT_YET, (30_000,)),
    RefusedKey("metric.reporters", _NOT_YET, ([], (), "", None)),
)
