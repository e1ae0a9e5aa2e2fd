"""`make soak-simulation`: new histories, for as long as you like.

Each kind continues at the seed where its last run ended, and the first run where CI ends: the
total that it prints counts CI's histories too. A run that finds a failure does not move on. The
position is kept in `build/`, for this machine only.
"""

import os
import sys

import pytest

from tests.simulation.budget import HISTORIES, KINDS
from tests.simulation.explorer import ROOT, explore_in_parallel

pytestmark = pytest.mark.soak

PLACES = ROOT / "build" / "simulation"


@pytest.mark.parametrize("kind", KINDS)
def test_soak_simulation(kind: str) -> None:
    minutes = float(os.environ.get("MINUTES", "30"))
    place = PLACES / f"{kind}.next-seed"
    first_seed = int(place.read_text()) if place.exists() else HISTORIES[kind]
    explored = explore_in_parallel(kind, first_seed, sys.maxsize // 4, minutes * 60 / len(KINDS))
    PLACES.mkdir(parents=True, exist_ok=True)
    place.write_text(str(explored.next_seed))
    print(
        f"\n{kind}: {explored.histories} histories from seed {first_seed} on,"
        f" {explored.next_seed} in all"
    )
