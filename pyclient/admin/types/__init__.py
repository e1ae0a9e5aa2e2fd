"""The arguments and enums of admin calls, with kafka-python's names: one file per noun."""
