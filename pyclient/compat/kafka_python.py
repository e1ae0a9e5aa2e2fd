"""Runs programs that import `kafka` (kafka-python) on this package, unchanged.

    from pyclient.compat import kafka_python

    kafka_python.install()  # before the program imports kafka

From then on `import kafka` and `from kafka.errors import ...` give this package's modules, whether
kafka-python is installed or not. `uninstall` undoes it; `installed` does both, for a `with`.
From the command line, with the program's own arguments behind it:

    python -m pyclient.compat.kafka_python app.py
    python -m pyclient.compat.kafka_python -m package.module

Modules of kafka-python that this package has no counterpart for are a ModuleNotFoundError that says
so. What was imported from `kafka` before stays what it was.
"""

import importlib
import sys
from collections.abc import Sequence

from pyclient.compat.module_alias import ModuleAlias

__all__ = ["MODULES", "install", "installed", "main", "uninstall"]

MODULES = frozenset(
    {
        "",
        "admin",
        "admin.acl_resource",
        "admin.client",
        "admin.config_resource",
        "admin.new_partitions",
        "admin.new_topic",
        "cluster",
        "codec",
        "consumer",
        "consumer.fetcher",
        "consumer.group",
        "consumer.subscription_state",
        "coordinator",
        "coordinator.assignors",
        "coordinator.assignors.abstract",
        "coordinator.assignors.cooperative_sticky",
        "coordinator.assignors.range",
        "coordinator.assignors.roundrobin",
        "coordinator.assignors.sticky",
        "coordinator.assignors.sticky.sticky_assignor",
        "coordinator.protocol",
        "errors",
        "future",
        "metrics",
        "partitioner",
        "partitioner.abc",
        "partitioner.default",
        "partitioner.sticky",
        "producer",
        "producer.future",
        "producer.kafka",
        "record",
        "record.abc",
        "serializer",
        "serializer.abstract",
        "serializer.default",
        "serializer.json",
        "serializer.wrapper",
        "structs",
        "version",
    }
)
"""kafka-python's modules that this package has under the same names."""

_GUIDE = "docs/drop-in.md"
_alias = ModuleAlias(
    "kafka",
    {f"kafka.{one}".rstrip("."): f"pyclient.{one}".rstrip(".") for one in MODULES},
    _GUIDE,
)

install = _alias.install
uninstall = _alias.uninstall
installed = _alias.installed


def main(arguments: Sequence[str]) -> None:
    """Run a program: a file, or `-m` and a module, and its arguments."""
    _alias.run(
        arguments,
        "usage: python -m pyclient.compat.kafka_python [-m MODULE | FILE] [ARGUMENT ...]\n"
        "Runs a program that imports kafka (kafka-python) on pyclient.",
    )


if __name__ == "__main__":
    # Under its own name, so that the program and this module share one state.
    importlib.import_module("pyclient.compat.kafka_python").main(sys.argv[1:])
