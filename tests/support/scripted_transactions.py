"""A transaction coordinator of a scripted network, written from Kafka's rules, not from our broker.

It keeps one transaction per id, checks that a producer's epoch is current, and that partitions of a
Produce request were added (before transaction.version 2) or adds them. What a request gets instead
is scripted per API.
"""

from collections import defaultdict, deque

from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from pyclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from pyclient.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pyclient.records.batch import RecordBatch
from tests.support.scripted_log import ScriptedLog

PRODUCER_FENCED = 90
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48


class ScriptedTransactions:
    """Coordinates the transactions of one broker, in front of its log.

    Attributes:
        script: what the next requests of an API get instead, one entry each: a code, DISCONNECT
            (before anything is done) or `lost` (after everything is done); None is as usual.
        served: the requests and their versions, in order.
        ended: "commit" or "abort" of each transaction, with its values and offsets.
    """

    lost = object()

    def __init__(self, network, broker, version=2):
        self.broker = broker
        self.log = ScriptedLog(network)
        self.script = defaultdict(deque)
        self.served = []
        self.ended = []
        self.producer_id, self.epoch = 7, -1
        self.ended_epoch = None
        self.partitions = set()
        self.groups = set()
        self.values = []
        self.offsets = {}
        self.is_open = False
        self.set_version(version)
        for request, answer in (
            (FindCoordinatorRequest, self._find),
            (InitProducerIdRequest, self._init),
            (AddPartitionsToTxnRequest, self._add_partitions),
            (AddOffsetsToTxnRequest, self._add_offsets),
            (TxnOffsetCommitRequest, self._commit_offsets),
            (EndTxnRequest, self._end),
            (ProduceRequest, self._produce),
        ):
            broker.on(request, self._scripted(request, answer))

    def set_version(self, version):
        """The cluster's transaction.version, for connections made from now on."""
        self.version = version
        self.broker.features = {"transaction.version": version}

    def names(self):
        """The APIs that were asked, in order."""
        return [type(request).__name__.removesuffix("Request") for request, _ in self.served]

    def _scripted(self, request_class, answer):
        def serve(request, version):
            self.served.append((request, version))
            steps = self.script[request_class]
            step = steps.popleft() if steps else None
            if step is DISCONNECT:
                return DISCONNECT
            if request_class is ProduceRequest:
                return self._produce(request, version, step)
            if isinstance(step, int):
                return self._refusal(request, step)
            answered = answer(request, version)
            return DISCONNECT if step is self.lost else answered

        return serve

    def _refusal(self, request, code):
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(error_code=code)
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(error_code=code)
        if isinstance(request, AddOffsetsToTxnRequest):
            return AddOffsetsToTxnResponse(error_code=code)
        if isinstance(request, EndTxnRequest):
            return EndTxnResponse(error_code=code)
        if isinstance(request, TxnOffsetCommitRequest):
            return self._offsets_answer(request, code)
        return self._added(request, code)

    def _find(self, request, _version):
        return FindCoordinatorResponse(
            node_id=self.broker.node_id, host=self.broker.host, port=self.broker.port
        )

    def _init(self, request, _version):
        if request.producer_id >= 0 and request.producer_epoch != self.epoch:
            return InitProducerIdResponse(error_code=PRODUCER_FENCED)
        if self.is_open:
            self._finish("abort")
        self.ended_epoch = None
        self.epoch += 1
        return InitProducerIdResponse(producer_id=self.producer_id, producer_epoch=self.epoch)

    def _is_fenced(self, epoch):
        return epoch != self.epoch

    def _add_partitions(self, request, _version):
        if self._is_fenced(request.v3_and_below_producer_epoch):
            return self._added(request, PRODUCER_FENCED)
        self.is_open = True
        for topic in request.v3_and_below_topics:
            self.partitions |= {(topic.name, one) for one in topic.partitions}
        return self._added(request, 0)

    def _added(self, request, code):
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=one, partition_error_code=code
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
        )

    def _add_offsets(self, request, _version):
        if self._is_fenced(request.producer_epoch):
            return AddOffsetsToTxnResponse(error_code=PRODUCER_FENCED)
        self.is_open = True
        self.groups.add(request.group_id)
        return AddOffsetsToTxnResponse()

    def _commit_offsets(self, request, version):
        if self._is_fenced(request.producer_epoch):
            return self._offsets_answer(request, INVALID_PRODUCER_EPOCH)
        if version >= 5:
            self.is_open = True
            self.groups.add(request.group_id)
        assert request.group_id in self.groups, "offsets of a group that was not added"
        for topic in request.topics:
            for one in topic.partitions:
                self.offsets[topic.name, one.partition_index] = one.committed_offset
        return self._offsets_answer(request, 0)

    def _offsets_answer(self, request, code):
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=one.partition_index, error_code=code
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _end(self, request, version):
        if version >= 5 and request.producer_epoch == self.ended_epoch and not self.is_open:
            return EndTxnResponse(producer_id=self.producer_id, producer_epoch=self.epoch)  # again
        if self._is_fenced(request.producer_epoch):
            return EndTxnResponse(error_code=PRODUCER_FENCED)
        if not self.is_open and (request.committed or version < 5):
            last = self.ended[-1][0] if self.ended else None
            same = last == ("commit" if request.committed else "abort")
            return EndTxnResponse(error_code=0 if same else INVALID_TXN_STATE)
        self._finish("commit" if request.committed else "abort")
        if version < 5:
            return EndTxnResponse()
        self.ended_epoch = self.epoch
        self.epoch += 1
        return EndTxnResponse(producer_id=self.producer_id, producer_epoch=self.epoch)

    def _finish(self, how):
        self.ended.append((how, self.values, self.offsets))
        self.values, self.offsets = [], {}
        self.partitions, self.groups = set(), set()
        self.is_open = False

    def _produce(self, request, version, step=None):
        assert request.transactional_id is not None
        appended = []
        for topic in request.topic_data:
            name = self.log._name(topic)
            for partition in topic.partition_data:
                batch = RecordBatch(bytes(partition.records))
                assert batch.is_transactional
                if version >= 12:
                    self.partitions.add((name, partition.index))
                    self.is_open = True
                assert (name, partition.index) in self.partitions, "a partition not added"
                if not (self._is_fenced(batch.producer_epoch) or isinstance(step, int)):
                    appended += [record.value for record in batch.decode()]
        before = len(self.log.all_values("orders"))
        self.log.script.append(step if isinstance(step, int) else None)
        answer = self.log.produce(request, version)
        if len(self.log.all_values("orders")) > before:
            self.values += appended
        return DISCONNECT if step is self.lost else answer
