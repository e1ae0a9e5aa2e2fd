"""Orders that OpenTelemetry traces through Kafka: its instrumentation of kafka-python.

`python traced_orders.py SERVERS TOPIC` prints the spans, and whether the receiver of a record
continues the trace of its sender, as JSON.
"""

import json
import sys

from kafka import KafkaConsumer, KafkaProducer
from opentelemetry.instrumentation.kafka import KafkaInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

COUNT = 5


def main(servers, topic):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    hooked = []
    KafkaInstrumentor().instrument(
        tracer_provider=provider,
        produce_hook=lambda span, args, kwargs: hooked.append(("produce", len(args))),
        consume_hook=lambda span, record, args, kwargs: hooked.append(
            ("consume", record.value.decode())
        ),
    )

    producer = KafkaProducer(bootstrap_servers=[servers])
    for number in range(COUNT):
        headers = [("number", b"%d" % number)] if number % 2 else None
        future = producer.send(topic, b"order %d" % number, key=b"table", headers=headers)
    future.get(timeout=30)

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=[servers],
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    received = []
    for record in consumer:
        received.append((record.value.decode(), sorted(name for name, _ in record.headers)))
        if len(received) == COUNT:
            break
    KafkaInstrumentor().uninstrument()
    producer.send(topic, b"not traced").get(timeout=30)
    last = next(consumer)
    consumer.close()
    producer.close()

    finished = spans.get_finished_spans()
    sent = {span.context.span_id: span for span in finished if span.kind.name == "PRODUCER"}
    seen = [
        {
            "name": span.name.replace(topic, "TOPIC"),
            "kind": span.kind.name,
            "attributes": {
                name: str(value).replace(topic, "TOPIC")
                for name, value in sorted(span.attributes.items())
            },
            "continues": span.parent is not None and span.parent.span_id in sent,
        }
        for span in finished
    ]
    last_headers = [name for name, _ in last.headers]
    print(json.dumps([seen, hooked, received, last.value.decode(), last_headers]))


if __name__ == "__main__":
    main(*sys.argv[1:])
