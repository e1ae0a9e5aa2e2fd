"""Kafka's wire protocol: declarative messages, compiled codecs, headers and frames."""
