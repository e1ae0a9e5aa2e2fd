"""kafka-python's module of `KafkaProducer`."""

from pyclient.producer.producer import KafkaProducer

__all__ = [
    "KafkaProducer",
]
