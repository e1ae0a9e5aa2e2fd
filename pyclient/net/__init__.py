"""The engine of every client: one I/O thread, its connections, and waiting for it.

- `scripted`: a network that follows a script, for tests

- `broker_versions`: the API versions of a broker
- `connection`: one connection to a node (sans-IO)
- `connection_state`: its states, and the transitions between them
- `engine`: wires the I/O thread, the network and the metadata of a client
- `environment`: what an engine runs on: clock, entropy, sockets, threads
- `failures`: the errors of failed connections
- `frame_reader`: cuts a byte stream into frames
- `in_flight_requests`: requests that were sent and not answered yet
- `io_thread`: the loop
- `lifetime`: forks and the end of the process
- `metadata_manager`: Metadata requests, and waiting for a topic
- `network_client`: all connections of a client
- `pem`: certificates and keys in PEM
- `pickling`: the error for clients that are pickled
- `poller`: waits for sockets
- `reconnect_backoff`: when a node may be connected to again
- `refusals`: errors for what other clients have and ours do not
- `request_manager`: the interface between the loop and a manager
- `resolver`: resolves host names
- `throttling`: which side waits when a quota is exceeded (KIP-219)
- `tls`: TLS options to an `ssl.SSLContext`
- `tls_failures`: explains failed TLS handshakes
- `tls_transport`: a TLS connection
- `transport`: a TCP connection
- `waiting`: the only place that blocks
"""
