"""Building record batches: the twin's `BatchBuilder`."""

from pyclient import _twin

BatchBuilder = _twin.BatchBuilder
batch_size_of = _twin.batch_size_of
