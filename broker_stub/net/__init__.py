"""The broker's sockets; no API's behaviour.

- `connection`: one client's connection over plain TCP
- `idle_connections`: closes connections that are idle for `connections.max.idle.ms`
- `receive_buffer`: bytes on their way in, handed out as whole frames
- `server`: the selector loop
- `tls`: a listener's TLS context
- `tls_connection`: one client's connection over TLS
"""
