"""Kafka for Python: producer, consumer and admin client.

The public names live here; `NATIVE` tells whether the compiled twins are in use.
"""

from pyclient._twin import NATIVE

__all__ = ["NATIVE", "__version__"]

__version__ = "0.1.0"
