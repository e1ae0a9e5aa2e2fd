"""For programs that were written for other clients.

- `kafka_python`: runs a program that imports `kafka`, unchanged
- `assignors`, `codec`, `future`: kafka-python's forms of what this package does in another way
"""
