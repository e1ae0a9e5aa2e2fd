"""All randomness of a world, from one seed.

Every part draws from its own named stream, so that an extra draw by a program does not change what
the network does. Only the holder of the baton draws.
"""

import hashlib
import math

from pyclient.entropy import Entropy


class Chance(Entropy):
    """A stream of random numbers, with the draws that simulations need most."""

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        # Not drawn where the answer is known: most worlds have most faults switched off.
        return probability > 0 and self.uniform(0, 1) < probability

    def exponential(self, mean: float) -> float:
        """A random time until the next event of a Poisson process with this mean interval."""
        return mean if mean == math.inf else -mean * math.log(1 - self.uniform(0, 1))


def chance(seed: int, name: str) -> Chance:
    """The stream of this name in the world of this seed."""
    # Not `hash`, which differs between processes.
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return Chance(int.from_bytes(digest[:8], "big"))
