"""Lets `import confluent_kafka` mean `pyclient.compat.confluent`."""

from collections.abc import Sequence

from pyclient.compat.module_alias import ModuleAlias

__all__ = ["install", "installed", "main", "uninstall"]

_OURS = "pyclient.compat.confluent"
_alias = ModuleAlias(
    "confluent_kafka",
    {
        "confluent_kafka": _OURS,
        "confluent_kafka.admin": f"{_OURS}.admin",
        "confluent_kafka.error": f"{_OURS}.error",
        "confluent_kafka.cimpl": _OURS,
    },
    "docs/drop-in.md",
)

install = _alias.install
uninstall = _alias.uninstall
installed = _alias.installed


def main(arguments: Sequence[str]) -> None:
    """Run a program: a file, or `-m` and a module, and its arguments."""
    _alias.run(
        arguments,
        "usage: python -m pyclient.compat.confluent [-m MODULE | FILE] [ARGUMENT ...]\n"
        "Runs a program that imports confluent_kafka on pyclient.",
    )
