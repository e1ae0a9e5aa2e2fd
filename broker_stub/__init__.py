"""A Kafka broker light enough to live inside a test and real enough to keep data."""
