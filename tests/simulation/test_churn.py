"""Topics that come and go in simulated worlds: what was flushed to one that lives is there."""

import pytest

from broker_stub.log.files.file_names import LOG_SUFFIX
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.testing.simulation import explore
from broker_stub.testing.simulation.disk import SimulatedDisk
from tests.simulation.churn_history import churn_history
from tests.simulation.explorer import explore_slice

pytestmark = pytest.mark.simulation


@pytest.mark.timeout(300)
def test_flushed_records_of_living_topics_are_there() -> None:
    explore_slice("churn")


def test_the_check_finds_a_flush_that_forgets_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    synced = SimulatedDisk.synced

    def forget_records(disk: SimulatedDisk, path: str) -> None:
        if not path.endswith(LOG_SUFFIX) or CLUSTER_METADATA in path:
            synced(disk, path)

    monkeypatch.setattr(SimulatedDisk, "synced", forget_records)
    with pytest.raises(AssertionError, match="is not there any more"):
        explore(churn_history, range(200))
