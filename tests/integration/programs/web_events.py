"""A web application that publishes its events in the background, written for kafka-python.

Requests only put an event into a queue; a thread sends it. What cannot be sent is counted and must
not fail a request.
"""

import argparse
import atexit
import json
import logging
import queue
import sys
import threading
from io import BytesIO

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError

log = logging.getLogger("web")


class EventPublisher:
    def __init__(self, servers, topic):
        self.topic = topic
        self.delivered = []
        self.failed = []
        self.events = queue.Queue(maxsize=1000)
        self.producer = KafkaProducer(
            bootstrap_servers=servers.split(","),
            client_id="web-events",
            acks="all",
            retries=5,
            linger_ms=20,
            batch_size=32 * 1024,
            compression_type="gzip",
            max_request_size=100_000,
            key_serializer=lambda key: key.encode("utf-8") if key is not None else None,
            value_serializer=lambda value: json.dumps(value, sort_keys=True).encode("utf-8"),
        )
        self.thread = threading.Thread(target=self.run, name="publisher", daemon=True)
        self.thread.start()
        atexit.register(self.stop)

    def publish(self, key, event):
        try:
            self.events.put_nowait((key, event))
        except queue.Full:
            self.failed.append("queue full")

    def run(self):
        while True:
            item = self.events.get()
            if item is None:
                return
            key, event = item
            try:
                future = self.producer.send(
                    self.topic,
                    value=event,
                    key=key,
                    headers=[("content-type", b"application/json")],
                )
            except (KafkaTimeoutError, MessageSizeTooLargeError) as error:
                self.on_error(event["id"], error)
            else:
                future.add_callback(self.on_success, event["id"])
                future.add_errback(self.on_error, event["id"])

    def on_success(self, event_id, metadata):
        self.delivered.append((event_id, metadata.partition, metadata.offset))

    def on_error(self, event_id, error):
        log.warning("event %s is lost: %s", event_id, error)
        assert isinstance(error, KafkaError)
        self.failed.append((event_id, isinstance(error, MessageSizeTooLargeError)))

    def stop(self):
        if self.thread.is_alive():
            self.events.put(None)
            self.thread.join()
            self.producer.flush(timeout=30)
            self.producer.close(timeout=30)


def make_app(publisher):
    def app(environ, start_response):
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = json.loads(environ["wsgi.input"].read(size))
        publisher.publish(body.get("user"), body)
        start_response("202 Accepted", [("Content-Type", "text/plain")])
        return [b"accepted"]

    return app


def request(app, body):
    data = json.dumps(body).encode()
    statuses = []
    environ = {"CONTENT_LENGTH": str(len(data)), "wsgi.input": BytesIO(data)}
    answer = b"".join(app(environ, lambda status, headers: statuses.append(status)))
    return statuses[0], answer.decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", required=True)
    parser.add_argument("--prefix", default="")
    arguments = parser.parse_args()
    publisher = EventPublisher(arguments.servers, arguments.prefix + "web-events")
    app = make_app(publisher)
    statuses = set()
    for number in range(200):
        event = {"id": number, "user": f"user-{number % 17}", "path": f"/items/{number}"}
        if number == 150:
            event["path"] = "x" * 200_000  # larger than a request may be
        statuses.add(request(app, event))
    publisher.stop()
    offsets = {}
    for event_id, partition, offset in sorted(publisher.delivered):
        offsets.setdefault(str(partition), []).append((offset, event_id))
    json.dump(
        {
            "statuses": sorted(statuses),
            "delivered": {key: sorted(value) for key, value in sorted(offsets.items())},
            "failed": publisher.failed,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
