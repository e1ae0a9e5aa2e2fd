"""The messages: one file per API, named after it.

`*_records` are the records of internal topics, and `consumer_protocol` is the data that group
members exchange. `current_leader` has structs that Produce and Fetch share.
"""
