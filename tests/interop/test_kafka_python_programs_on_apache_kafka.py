"""Unmodified programs for kafka-python on Apache Kafka: the same outcome with either client."""

import pytest

from tests.interop.apache_kafka import ApacheKafka
from tests.support.kafka_python_programs import PROGRAMS, outcomes


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unmodified_program_has_the_same_outcome(apache: ApacheKafka, program: str) -> None:
    theirs, ours = outcomes(program, apache.bootstrap_servers)
    assert theirs
    assert ours == theirs
