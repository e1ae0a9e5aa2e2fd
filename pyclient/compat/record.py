"""`ABCRecord`, which libraries for kafka-python name in annotations (OpenTelemetry's)."""

from pyclient.records.record import ConsumerRecord

ABCRecord = ConsumerRecord
