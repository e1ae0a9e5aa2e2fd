"""Load tests whose reports read like those of Kafka's own perf tools."""
