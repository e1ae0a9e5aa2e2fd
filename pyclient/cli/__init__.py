"""The command line: `python -m pyclient`."""
