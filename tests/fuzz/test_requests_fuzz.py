"""Mutated requests to the broker: an answer, an error or a hang-up, and it serves on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from broker_stub import diagnostics
from broker_stub.request import Parked
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from tests.fuzz.bad_peers import serve_bad_peers
from tests.fuzz.mutator import SEED, Mutator, input_count
from tests.fuzz.requests import corpus
from tests.support.node_harness import NodeHarness

PARKED_MAX = 50


@pytest.mark.fuzz
@pytest.mark.timeout(0)  # as long as FUZZ_INPUTS asks for
def test_mutated_requests_are_answered_or_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []
    monkeypatch.setattr(
        diagnostics, "exception", lambda message, *values: failures.append(message % values)
    )
    monkeypatch.setattr(diagnostics, "warn", lambda *_: None)
    harness = NodeHarness(tmp_path, auto_create_topics_enable=False)
    harness.create_topic("orders")
    originals = corpus()
    mutator = Mutator(SEED)
    parked: list[Parked] = []
    answered = 0
    for index in mutator.inputs(len(originals), input_count(10_000)):
        mutated = mutator.mutate(originals[index], originals)
        reply = harness.node.handle(memoryview(bytearray(mutated)), harness.connection)
        if isinstance(reply, Parked):
            parked.append(reply)
            if len(parked) > PARKED_MAX:
                parked.pop(0).abandon()
        else:
            answered += bool(reply.parts)
        assert not failures, f"FUZZ_SEED={SEED}: {failures}, {mutated.hex()}"
    assert answered > 0
    assert harness.ask(ApiVersionsRequest(), 0).error_code == 0
    for one in parked:
        one.abandon()
    assert len(harness.node.purgatory) == 0
    harness.node.close()


@pytest.mark.fuzz
@pytest.mark.timeout(0)
def test_others_are_served_in_constant_memory_while_bad_peers_come_and_go(tmp_path: Path) -> None:
    served = serve_bad_peers(tmp_path, input_count(10_000))
    print(f"\nFUZZ_SEED={SEED}: {served}")
    assert served.answered > 0
    assert served.hung_up_on > 0


@pytest.mark.soak
def test_soak_fuzz_of_a_serving_broker(tmp_path: Path, soak_is_over: Callable[[], bool]) -> None:
    print(f"\nFUZZ_SEED={SEED}: {serve_bad_peers(tmp_path, input_count(100_000), soak_is_over)}")
