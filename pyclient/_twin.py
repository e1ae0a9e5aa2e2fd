"""Picks the twin, once, at the first import: compiled (`_native`) or pure Python (`_pure`).

The compiled one where it was built, else the other. `PYCLIENT_IMPL=native` or `python` forces one,
and forcing what is missing is an ImportError with the reason as its cause. `NATIVE` tells which is
in use. Everything above reads the twins' names from here and nowhere else.
"""

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyclient._pure.batch import BatchBuilder as BatchBuilder
    from pyclient._pure.batch import ColumnBuffers as ColumnBuffers
    from pyclient._pure.batch import ConsumerRecord as ConsumerRecord
    from pyclient._pure.batch import RecordDecoder as RecordDecoder
    from pyclient._pure.batch import batch_size_of as batch_size_of
    from pyclient._pure.batch import crc32c as crc32c
    from pyclient._pure.batch import deserialized as deserialized
    from pyclient._pure.batch import murmur2 as murmur2
    from pyclient._pure.batch import partition_for_key as partition_for_key
    from pyclient._pure.batch import partitions_of_keys as partitions_of_keys
    from pyclient._pure.send import AppendSlot as AppendSlot
    from pyclient._pure.send import FastSend as FastSend
    from pyclient._pure.send import RecordFuture as RecordFuture
    from pyclient._pure.send import TopicSlots as TopicSlots

MODULES: Final = {
    "batch": (
        "BatchBuilder",
        "ColumnBuffers",
        "ConsumerRecord",
        "RecordDecoder",
        "batch_size_of",
        "crc32c",
        "deserialized",
        "murmur2",
        "partition_for_key",
        "partitions_of_keys",
    ),
    "send": ("AppendSlot", "FastSend", "RecordFuture", "TopicSlots"),
}
"""The twin modules, and the names that both twins of each export."""

PACKAGES: Final = {"native": "pyclient._native", "python": "pyclient._pure"}


def load(implementation: str) -> dict[str, ModuleType]:
    """Import every module of one twin: all of them, for the two are not to be mixed."""
    package = PACKAGES[implementation]
    return {name: importlib.import_module(f"{package}.{name}") for name in MODULES}


def _choose() -> tuple[str, dict[str, ModuleType]]:
    forced = os.environ.get("PYCLIENT_IMPL", "")
    if forced not in ("", *PACKAGES):
        raise ImportError(f"PYCLIENT_IMPL is {forced!r}; it can be 'native' or 'python'")
    if forced != "python":
        try:
            return "native", load("native")
        except ImportError as error:
            if forced == "native":
                raise ImportError(
                    "PYCLIENT_IMPL=native, but the compiled modules cannot be loaded "
                    f"({error}): install with a C compiler, or unset PYCLIENT_IMPL"
                ) from error
    return "python", load("python")


_implementation, _modules = _choose()

NATIVE: Final[bool] = _implementation == "native"

globals().update(
    (name, getattr(_modules[module], name)) for module, names in MODULES.items() for name in names
)
