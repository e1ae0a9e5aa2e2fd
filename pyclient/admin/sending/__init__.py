"""How admin calls are sent.

- `calls`: the base of each noun's calls
- `requests`: sends a call's requests, with retries and a deadline; `routes`: to which brokers
- `work`: a call's named things and their progress; `results`: their outcomes
- `partition_keys`, `topic_metadata`: what calls about partitions and topics share
"""
