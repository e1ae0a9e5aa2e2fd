"""How much CI explores: the histories of each kind, and the most time they may take."""

import os

HISTORIES = 1_000
SECONDS = float(os.environ.get("SIMULATION_SECONDS", "60"))
