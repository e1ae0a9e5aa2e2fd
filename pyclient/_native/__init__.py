"""Compiled twins of `pyclient._pure`: same names, same bytes.

- `batch.pyx`: record batches; includes the `.pxi` files, which are named as the files of `_pure`
  (`payload`, `segment` and `bulk` have no twin: they are part of `builder`; `handover` lets an I/O
  thread have the GIL while another thread decodes)
- `exchange.pyx`: one turn of the I/O thread; its twin is `pyclient.net.poller`. POSIX only
- `send.pyx`: `KafkaProducer.send` for ordinary records, without a lock
"""
