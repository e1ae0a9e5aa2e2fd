"""Transactions as records: what is written by hand is what the codec would write."""

from hypothesis import given
from hypothesis import strategies as st

from broker_stub.coordinator.transactions.transaction_log import (
    read_transaction,
    transaction_record,
)
from broker_stub.coordinator.transactions.transaction_state import (
    TransactionImage,
    TransactionState,
)
from pyclient.protocol.messages.transaction_records import TransactionLogValue
from pyclient.types import TopicPartition

ids = st.integers(-1, 2**62)
partitions = st.frozensets(
    st.builds(TopicPartition, st.sampled_from(["a", "zwölf", "t" * 200]), st.integers(0, 300)),
    max_size=150,
)


@st.composite
def images(draw: st.DrawFn) -> TransactionImage:
    state = draw(st.sampled_from(TransactionState))
    return TransactionImage(
        draw(st.text(min_size=1)),
        draw(st.integers(0, 2**62)),
        draw(st.integers(0, 2**15 - 1)),
        draw(st.integers(1, 2**31 - 1)),
        state,
        frozenset() if state is TransactionState.EMPTY else draw(partitions),
        draw(st.integers(-1, 2**50)),
        draw(st.integers(0, 2**50)),
        previous_producer_id=draw(ids),
        next_producer_id=draw(ids),
        client_version=draw(st.integers(0, 2)),
    )


@given(images())
def test_a_record_is_read_as_it_was_written(image):
    key, value = transaction_record(image, 2)
    assert read_transaction(key, value) == (image.transactional_id, image)
    assert TransactionLogValue.decode(memoryview(value)[2:], 1).encode_bytes(1) == value[2:]


@given(images())
def test_an_older_record_has_neither_other_ids_nor_a_version(image):
    found = read_transaction(*transaction_record(image, 0))[1]
    assert found == image._replace(previous_producer_id=-1, next_producer_id=-1, client_version=0)
