"""Record batches: building, reading, compression, and Arrow columns."""
