"""kafka-python's modules of assignors."""
