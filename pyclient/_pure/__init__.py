"""Pure-Python twins of `pyclient._native`: same names, same bytes."""
