"""kafka-python's modules of the group coordinator, as far as programs use them."""
