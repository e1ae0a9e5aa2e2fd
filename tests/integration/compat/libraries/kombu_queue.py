"""Tasks in a queue of kombu's, over its Kafka transport (confluent-kafka).

`python kombu_queue.py SERVERS TOPIC` puts tasks, takes, acknowledges and rejects them, and prints
what it saw as JSON.
"""

import json
import sys

from kombu import Connection

COUNT = 5


def take(queue, worked):
    message = queue.get(block=True, timeout=30)
    worked.append(message.payload)
    return message


def main(servers, topic):
    options = {"wait_time_seconds": 5, "num_partitions": 1}
    url = f"confluentkafka://{servers}"
    seen = {}
    with Connection(url, transport_options=options) as connection:
        queue = connection.SimpleQueue(topic)
        for number in range(COUNT):
            queue.put({"task": number}, serializer="json", headers={"number": number})
        worked = []
        for _ in range(3):
            take(queue, worked).ack()
        take(queue, worked).reject()
        seen["size"] = queue.qsize() >= 0
        seen["names"] = topic in connection.default_channel.client.list_topics().topics
        queue.close()
    seen["worked"] = worked
    # Another worker goes on where the last one has committed.
    with Connection(url, transport_options=options) as connection:
        queue = connection.SimpleQueue(topic)
        message = queue.get(block=True, timeout=30)
        seen["next"] = [message.payload, message.headers, message.content_type]
        message.ack()
        queue.close()
        seen["version"] = bool(connection.transport.driver_version())
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
