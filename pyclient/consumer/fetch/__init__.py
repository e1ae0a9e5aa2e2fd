"""Fetching: raw batches come in on the I/O thread, records go out on the caller's."""
