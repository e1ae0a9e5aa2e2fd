"""The engine that every client stands on: one I/O thread, its connections, and waiting for it."""
