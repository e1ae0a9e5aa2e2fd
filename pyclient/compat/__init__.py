"""For programs that were written for other clients.

- `kafka_python`: runs a program that imports `kafka`, unchanged
- `confluent`: confluent-kafka's clients; also runs a program that imports `confluent_kafka`
- `module_alias`: lets the name of another package mean modules of this one
- `assignors`, `codec`, `future`, `record`: kafka-python's forms of what is done in another way here
"""
