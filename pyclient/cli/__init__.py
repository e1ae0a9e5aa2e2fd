"""The command line, `python -m pyclient`.

- `main`: finds the command and runs it
- `perf`: the load tests' options
"""
