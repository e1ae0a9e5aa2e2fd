# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False
"""The native twin of `pyclient._pure.batch`: record batches built and read in C.

One extension of several files, one idea each. Nothing here holds global mutable state but tables
that are written once at import, and the memory that `column_memory.pxi` keeps, which the GIL
guards. `BatchBuilder.try_append`, `extend` and `seal` change a batch without a call into Python
between two state changes, which makes each of them atomic under the GIL; on a free-threaded build
importing this module turns the GIL back on.
"""

import cython

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.string cimport memcpy

from pyclient.errors import CorruptRecordError

include "wire.pxi"
include "checksums.pxi"
include "record.pxi"
include "payload.pxi"
include "layout.pxi"
include "arrow.pxi"
include "segment.pxi"
include "builder.pxi"
include "rows.pxi"
include "handover.pxi"
include "decoder.pxi"
include "column_memory.pxi"
include "columns.pxi"
include "cursor.pxi"
