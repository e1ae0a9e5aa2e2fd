"""`pyclient broker`: the embedded broker as a server, with the options of `broker-stub`."""

import sys

import click


@click.command(
    "broker",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run the embedded broker; `pyclient broker --help` shows its options."""
    from broker_stub.__main__ import main

    try:
        return main(arguments)
    except SystemExit as error:  # argparse has printed its help or its complaint
        sys.stdout.flush()
        return error.code if isinstance(error.code, int) else 1
