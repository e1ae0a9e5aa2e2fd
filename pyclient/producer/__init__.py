"""The producer: from `send` on the caller's thread to the broker's answer on the I/O thread."""
