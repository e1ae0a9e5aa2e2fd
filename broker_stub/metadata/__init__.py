"""The cluster's state: an image, built from an append-only log that only the controller writes."""
