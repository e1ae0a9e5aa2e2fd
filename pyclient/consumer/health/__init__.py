"""What the consumer is doing, and why nothing flows: `KafkaConsumer.health`, and the log.

- `diagnosis`: what a partition is doing, from the facts
- `fetch_watch`: what became of the fetches
- `monitor`: notices stalls, and logs them
- `report`: what `KafkaConsumer.health` returns
"""
