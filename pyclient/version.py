"""The version of this library: the build reads it here, and brokers are told it. A leaf."""

__version__ = "0.1.0"
