"""Finds the command and runs it; a KafkaError ends as one line on stderr, not as a traceback."""

import argparse
import sys
from collections.abc import Sequence

from pyclient import __version__
from pyclient.cli import perf
from pyclient.errors import KafkaError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the process's exit code comes back."""
    parser = argparse.ArgumentParser(
        prog="pyclient", description="Kafka from the command line.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"kafka-pyclient {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    perf.add_command(commands)
    options = parser.parse_args(arguments)
    try:
        exit_code: int = options.run(options)
    except KafkaError as error:
        print(f"pyclient: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return exit_code
