"""Offsets: committed, looked up, reset."""
