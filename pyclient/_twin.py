"""Picks the twin, once, at the first import: compiled (`_native`) or pure Python (`_pure`).

The compiled one where it was built, else the other. `PYCLIENT_IMPL=native` or `python` forces one,
and forcing what is missing is an ImportError with the reason as its cause. `NATIVE` tells which is
in use, and `NATIVE_REASON` why it is not the compiled one. Everything above reads the twins' names
from here and nowhere else.
"""

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyclient._pure.batch import ArrowRows as ArrowRows
    from pyclient._pure.batch import BatchBuilder as BatchBuilder
    from pyclient._pure.batch import ColumnBuffers as ColumnBuffers
    from pyclient._pure.batch import ConsumerRecord as ConsumerRecord
    from pyclient._pure.batch import ListRows as ListRows
    from pyclient._pure.batch import RecordCursor as RecordCursor
    from pyclient._pure.batch import RecordDecoder as RecordDecoder
    from pyclient._pure.batch import batch_size_of as batch_size_of
    from pyclient._pure.batch import crc32c as crc32c
    from pyclient._pure.batch import deserialized as deserialized
    from pyclient._pure.batch import murmur2 as murmur2
    from pyclient._pure.batch import partition_for_key as partition_for_key
    from pyclient._pure.send import AppendSlot as AppendSlot
    from pyclient._pure.send import FastSend as FastSend
    from pyclient._pure.send import RecordFuture as RecordFuture
    from pyclient._pure.send import TopicSlots as TopicSlots

MODULES: Final = {
    "batch": (
        "ArrowRows",
        "BatchBuilder",
        "ColumnBuffers",
        "ConsumerRecord",
        "ListRows",
        "RecordCursor",
        "RecordDecoder",
        "batch_size_of",
        "crc32c",
        "deserialized",
        "murmur2",
        "partition_for_key",
    ),
    "send": ("AppendSlot", "FastSend", "RecordFuture", "TopicSlots"),
}
"""The twin modules, and the names that both twins of each export."""

PACKAGES: Final = {"native": "pyclient._native", "python": "pyclient._pure"}


def load(implementation: str) -> dict[str, ModuleType]:
    """Import every module of one twin: all of them, for the two are not to be mixed."""
    package = PACKAGES[implementation]
    return {name: importlib.import_module(f"{package}.{name}") for name in MODULES}


def _choose() -> tuple[str, str]:
    """The implementation to use, and why it is not the native one."""
    forced = os.environ.get("PYCLIENT_IMPL", "")
    if forced not in ("", *PACKAGES):
        raise ImportError(f"PYCLIENT_IMPL is {forced!r}; it can be 'native' or 'python'")
    if forced == "python":
        return "python", "PYCLIENT_IMPL=python"
    try:
        load("native")
    except ImportError as error:
        reason = _reason(error)
        if forced == "native":
            raise ImportError(
                f"PYCLIENT_IMPL=native, but the compiled modules cannot be loaded ({reason}): "
                "install with a C compiler, or unset PYCLIENT_IMPL"
            ) from error
        return "python", f"the compiled modules cannot be loaded ({reason})"
    return "native", ""


def _reason(error: ImportError) -> str:
    """What the build of this package has noted, else what the import says."""
    try:
        noted = importlib.import_module(f"{PACKAGES['native']}.not_built")
    except ImportError:
        return str(error)
    return f"{error}; {noted.REASON}"


_implementation, NATIVE_REASON = _choose()
"""Why the pure-Python twin is in use; empty when the compiled one is."""

NATIVE: Final[bool] = _implementation == "native"

_modules = load(_implementation)
globals().update(
    (name, getattr(_modules[module], name)) for module, names in MODULES.items() for name in names
)
