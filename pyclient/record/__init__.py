"""kafka-python's package of records; only `abc` has a counterpart here."""
