"""A round trip through broker and client, for installed packages: it imports nothing of the tests.

Prints which twin is in use.
"""

import pyclient
from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer

CODECS = (None, "gzip", "snappy", "lz4", "zstd")


def main() -> None:
    """Send a record with each codec, and read all of them."""
    with Broker() as broker:
        options = {"bootstrap_servers": broker.bootstrap_servers}
        for codec in CODECS:
            with KafkaProducer(**options, compression_type=codec) as producer:
                producer.send("orders", b"v" * 1000, key=str(codec).encode())
        with KafkaConsumer("orders", **options, auto_offset_reset="earliest") as consumer:
            keys = {next(consumer).key for _ in CODECS}
    assert keys == {str(codec).encode() for codec in CODECS}, keys
    print(pyclient.__file__, pyclient.NATIVE, pyclient.NATIVE_REASON)


if __name__ == "__main__":
    main()
