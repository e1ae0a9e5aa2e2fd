"""Record batches: building, reading, compression, and Arrow columns.

The hot code is in the twins `pyclient._native` and `pyclient._pure`.

- `batch`: reads batches; `header`: the layout of a batch's header
- `builder`: builds a batch
- `record`: `ConsumerRecord`
- `columns`: records as Arrow columns
- `compression`: the codecs
- `control`: transaction markers
- `legacy`: the message formats before Kafka 0.11
"""
