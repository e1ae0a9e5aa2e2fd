"""Partitions as this broker has them: leadership and high watermark over their logs."""
