"""The command line: `pyclient`, or `python -m pyclient`. It needs the extra `cli`.

- `main`: the entry point; says what to install if click is missing
- `root`: the root command, which loads a command when it is used
- `exit_codes`: the exit code, message and hint for each error
- `options/`: what commands have in common: the cluster, its configuration, types of arguments
- `output/`: tables, JSON, progress
- `commands/`: one file per command
- `perf/`: the load tests
"""
