"""Brokers of a scripted network that append to logs, and check an idempotent producer's numbers.

A small model of what a leader does with a Produce request, written from Kafka's rules and not
from our broker: it keeps the last five batches of a producer per partition, answers a duplicate
with its old offset, and refuses a gap.
"""

from collections import defaultdict, deque

from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pyclient.records.batch import RecordBatch

OUT_OF_ORDER = 45
MESSAGE_TOO_LARGE = 10


class Partition:
    """One log. `remembered`: how many batches of a producer it recognizes as duplicates."""

    remembered = 5

    def __init__(self):
        self.records = []
        self.batches = []
        self.producers = {}  # id -> (epoch, last batches as (base sequence, count, offset))

    def append(self, batch):
        """The error code and the base offset."""
        batch.check_crc()
        if batch.producer_id >= 0:
            epoch, last = self.producers.get(batch.producer_id, (batch.producer_epoch, None))
            if last is None:
                last = deque(maxlen=self.remembered)
            elif batch.producer_epoch != epoch:
                if batch.base_sequence != 0:
                    return OUT_OF_ORDER, -1
                last = deque(maxlen=self.remembered)
            for base, count, offset in last:
                if (base, count) == (batch.base_sequence, batch.record_count):
                    return 0, offset
            expected = sum(last[-1][:2]) % 2**31 if last else batch.base_sequence
            if batch.base_sequence != expected:
                return OUT_OF_ORDER, -1
            last.append((batch.base_sequence, batch.record_count, len(self.records)))
            self.producers[batch.producer_id] = (batch.producer_epoch, last)
        offset = len(self.records)
        self.batches.append(batch)
        self.records += batch.decode()
        return 0, offset


class ScriptedLog:
    """The partitions of all brokers of a network.

    Attributes:
        script: what to do with the next Produce requests, one entry each, before they are
            served as usual: a code answers with that error instead of appending; DISCONNECT
            hangs up instead; `lost` appends, then hangs up; None is as usual.
        batch_bytes_max: a larger batch is refused with MESSAGE_TOO_LARGE.
    """

    lost = object()

    def __init__(self, network):
        self.partitions = defaultdict(Partition)
        self.script = deque()
        self.batch_bytes_max = 10**9
        self.base_offset_known = True
        self.requests = []
        self.producer_ids = 0
        self._network = network
        for broker in network.brokers.values():
            self.serve(broker)

    def serve(self, broker):
        """Have a broker lead partitions."""
        broker.on(ProduceRequest, self.produce)
        broker.on(InitProducerIdRequest, self.init_producer_id)

    def values(self, topic, partition):
        """The values in a partition, in order."""
        return [record.value for record in self.partitions[topic, partition].records]

    def all_values(self, topic):
        """The values of a topic's partitions."""
        return [
            record.value
            for (name, _), partition in sorted(self.partitions.items())
            for record in partition.records
            if name == topic
        ]

    def init_producer_id(self, _request, _version):
        self.producer_ids += 1
        return InitProducerIdResponse(producer_id=self.producer_ids, producer_epoch=0)

    def produce(self, request, version):
        self.requests.append((request, version))
        step = self.script.popleft() if self.script else None
        if step is DISCONNECT:
            return DISCONNECT
        responses = []
        for topic in request.topic_data:
            answers = [
                self._answer(self._name(topic), partition, step)
                for partition in topic.partition_data
            ]
            responses.append(
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        if step is self.lost:
            return DISCONNECT
        return None if request.acks == 0 else ProduceResponse(responses=responses)

    def _name(self, topic):
        names = {topic_id: name for name, topic_id in self._network._topic_ids.items()}
        return topic.name or names[topic.topic_id]

    def _answer(self, topic, partition, step):
        batch = RecordBatch(bytes(partition.records))
        if isinstance(step, int):
            return PartitionProduceResponse(index=partition.index, error_code=step, base_offset=-1)
        if callable(step):
            return step(partition.index, batch)
        if len(partition.records) > self.batch_bytes_max:
            code, offset = MESSAGE_TOO_LARGE, -1
        else:
            code, offset = self.partitions[topic, partition.index].append(batch)
        return PartitionProduceResponse(index=partition.index, error_code=code, base_offset=offset)
