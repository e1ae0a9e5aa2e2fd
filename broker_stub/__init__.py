"""A Kafka broker light enough to live inside a test and real enough to keep data.

with Broker() as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
"""

from broker_stub.broker import Broker

__all__ = ["Broker"]
