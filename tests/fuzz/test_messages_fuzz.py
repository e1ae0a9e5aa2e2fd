"""Mutated messages: a `ProtocolError` that says where, or a message that can be written again."""

import resource
from collections.abc import Callable

import pytest

from pyclient.errors import ProtocolError
from pyclient.protocol.schema import Message
from tests.fuzz.mutator import SEED, SOAK_INPUTS, Mutator, check_share, input_count
from tests.golden.loader import golden_lines
from tests.support.messages import declared_messages

GROWTH_KIB_MAX = 64 * 1024


def corpus() -> list[tuple[type[Message], int, bytes]]:
    """Apache Kafka's bytes of every message that is declared, in every version."""
    declared = declared_messages()
    return [
        (declared[line["message"]], line["version"], bytes.fromhex(line["hex"]))
        for line in golden_lines("messages.jsonl.gz")
        if line["message"] in declared
    ]


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fuzz(count: int, until: Callable[[], bool] = lambda: False) -> tuple[int, int]:
    """Read mutated messages; how many there were, and how many of them could be read."""
    originals = corpus()
    bodies = [body for _, _, body in originals]
    for cls, version, body in originals:  # compile everything, so that only inputs count below
        assert read_and_write(cls, version, body)
    before, done, read = peak_kib(), 0, 0
    mutator = Mutator(SEED)
    for index in mutator.inputs(len(originals), count):
        cls, version, body = originals[index]
        mutated = mutator.mutate(body, bodies)
        try:
            read += read_and_write(cls, version, mutated)
        except Exception as error:
            error.add_note(f"FUZZ_SEED={SEED}: {cls.__name__} v{version}, {mutated.hex()}")
            raise
        done += 1
        if done % 1000 == 0 and until():
            break
    assert peak_kib() - before < GROWTH_KIB_MAX
    return done, read


@pytest.mark.fuzz
@pytest.mark.timeout(0)  # as long as FUZZ_INPUTS asks for
def test_mutated_messages_raise_protocol_errors_and_nothing_else() -> None:
    count = input_count(50_000)
    done, read = fuzz(count)
    assert done == count
    check_share(read, count)


@pytest.mark.soak
def test_soak_fuzz_of_messages(soak_is_over: Callable[[], bool]) -> None:
    done, read = fuzz(input_count(SOAK_INPUTS), until=soak_is_over)
    print(f"\nFUZZ_SEED={SEED}: {done} mutated messages, {read} of them readable")


def read_and_write(cls: type[Message], version: int, body: bytes) -> bool:
    """Whether the bytes were a message; if so, what is written of it reads as the same bytes."""
    try:
        message = cls.decode(body, version)
    except ProtocolError as error:
        check_refusal(error, cls, version, len(body))
        return False
    try:
        written = message.encode_bytes(version)
    except ProtocolError as error:
        check_string_too_long(error, cls, version)
        return True
    assert cls.decode(written, version).encode_bytes(version) == written
    return True


def check_explained(error: ProtocolError, cls: type[Message], version: int) -> None:
    assert (error.message_name, error.version) == (cls.__name__, version)
    # `explain` found nothing wrong where the codec gave up: one of the two is mistaken.
    assert "could not be" not in str(error), error


def check_refusal(error: ProtocolError, cls: type[Message], version: int, size: int) -> None:
    check_explained(error, cls, version)
    assert error.offset is not None
    assert 0 <= error.offset <= size


def check_string_too_long(error: ProtocolError, cls: type[Message], version: int) -> None:
    # Reading is more generous: a compact string may be longer than any that is written.
    check_explained(error, cls, version)
    assert "32767 at most" in str(error)
