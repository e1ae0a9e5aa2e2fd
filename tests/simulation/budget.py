"""How much CI explores: so many histories of a kind, if they take no longer than this."""

import os

HISTORIES = 1_000
SECONDS = float(os.environ.get("SIMULATION_SECONDS", "60"))
