"""Kafka for Python: producer, consumer and admin client.

The public names live here; `NATIVE` tells whether the compiled twins are in use.
"""

from pyclient._twin import NATIVE
from pyclient.version import __version__

__all__ = ["NATIVE", "__version__"]
