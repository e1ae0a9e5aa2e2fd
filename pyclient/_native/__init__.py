"""Compiled twins of `pyclient._pure`: same names, same bytes.

- `batch.pyx`: record batches; includes the `.pxi` files, which are named as the files of `_pure`
  (`payload`, `segment` and `bulk` have no twin: they are part of `builder`)
- `send.pyx`: `KafkaProducer.send` for ordinary records, without a lock
"""
