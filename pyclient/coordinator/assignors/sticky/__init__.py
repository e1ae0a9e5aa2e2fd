"""kafka-python's modules of the sticky assignor."""
