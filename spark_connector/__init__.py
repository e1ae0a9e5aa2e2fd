"""A Spark source and sink for Kafka on Spark's Python Data Source API: no jar."""
