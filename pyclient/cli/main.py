"""The entry point of `pyclient` and `python -m pyclient`."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code of the process."""
    try:
        from pyclient.cli.root import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        print(
            f"pyclient: the command line needs the package {error.name!r}, which is not installed."
            " Hint: pip install 'kafka-pyclient[cli]'",
            file=sys.stderr,
        )
        return 1
    return run(arguments)
