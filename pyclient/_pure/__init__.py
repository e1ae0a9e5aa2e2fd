"""Pure-Python twins of `pyclient._native`: same names, same bytes.

- `arrow`: reads Arrow arrays of bytes or text
- `batch`: the names of the native module `batch`
- `builder`: builds a batch in pooled buffers
- `checksums`: CRC-32C, murmur2, and the partition of a key
- `columns`: records as Arrow columns
- `decoder`: decodes the records of a batch
- `layout`: the bytes of one record
- `record`: `ConsumerRecord`
- `send`: the slots of open batches, and the base class of `KafkaProducer`
- `wire`: varints
"""
