"""How much CI explores: always the same seeds, from 0 on, so that no run meets an unknown one.

Together they take about two minutes on two idle cores. `make soak-simulation` explores the seeds
behind them.
"""

from typing import Final

HISTORIES: Final = {
    "admin": 300,
    "producer": 400,
    "churn": 150,
    "groups": 80,
    "consumer": 200,
    "transactions": 24,
    "truncation": 10,
}
KINDS: Final = tuple(HISTORIES)
# A machine that is much too slow explores fewer, and does not fail for that.
SECONDS: Final = 120.0
