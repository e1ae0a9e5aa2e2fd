"""Compiled twins of `pyclient._pure`: same names, same bytes."""
