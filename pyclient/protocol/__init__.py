"""Kafka's wire protocol: declared messages, compiled codecs, headers and frames.

- `messages/`: one file per API, with its request and its response
- `schema`: how a message is declared: `Message`, `Struct`, `field`
- `primitives`: the wire types
- `encoder`, `decoder`: compile a message's codec per version; `source` helps them
- `explain`: finds out why a codec failed
- `message_json`: messages as JSON; `internal_topics`: records of internal topics as JSON
- `header`, `frame`: what surrounds a message
- `registry`: API keys, and the choice of versions
"""
