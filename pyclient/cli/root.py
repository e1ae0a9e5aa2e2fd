"""The root command. `pyclient --help` imports no command; each is loaded when it is used."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from pyclient.cli import exit_codes
from pyclient.cli.options.cluster import root_options
from pyclient.errors import KafkaError
from pyclient.version import __version__


class Entry(NamedTuple):
    """Where a command is defined, and its line in the list of commands."""

    module: str
    help: str


COMMANDS: Final = {
    "topics": Entry("pyclient.cli.commands.topics", "List, create, alter and delete topics."),
    "produce": Entry("pyclient.cli.commands.produce", "Send records from a file or a pipe."),
    "consume": Entry("pyclient.cli.commands.consume", "Print records; find them by key."),
    "groups": Entry("pyclient.cli.commands.groups", "Lag and members of groups; move offsets."),
    "configs": Entry("pyclient.cli.commands.configs", "Options of topics, brokers and groups."),
    "acls": Entry("pyclient.cli.commands.acls", "Who may do what."),
    "users": Entry("pyclient.cli.commands.users", "Passwords of users (SCRAM)."),
    "quotas": Entry("pyclient.cli.commands.quotas", "How much users and clients may do."),
    "transactions": Entry(
        "pyclient.cli.commands.transactions", "List transactions; abort those that hang."
    ),
    "cluster": Entry("pyclient.cli.commands.cluster", "Brokers, disks, features, API versions."),
    "dump-log": Entry(
        "pyclient.cli.commands.dump_log", "What is in a broker's files; what is wrong with them."
    ),
    "broker": Entry("pyclient.cli.commands.broker", "Run the embedded broker."),
    "completion": Entry("pyclient.cli.commands.completion", "Complete commands in your shell."),
    "perf": Entry("pyclient.cli.perf.group", "Measure how fast records are sent and read."),
}
"""The module of each command has it as `command`."""

_EPILOG: Final = """\b
Examples:
  pyclient topics create orders --partitions 3
  echo 'hello' | pyclient produce orders
  pyclient consume orders --from-beginning
\b
Exit codes:
""" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in exit_codes.MEANINGS.items())


class RootGroup(click.Group):
    """Finds commands in the table, and turns errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = import_module(entry.module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if not near:
                raise
            message = f"No such command {args[0]!r}. Did you mean {near[0]!r}?"
            raise click.UsageError(message, error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()  # a broken pipe shows here at the latest
        except BrokenPipeError as error:
            exit_codes.abandon_output()
            ctx.exit(exit_codes.exit_code(error))
        except KeyboardInterrupt as error:
            ctx.exit(exit_codes.exit_code(error))
        except (KafkaError, OSError) as error:
            exit_codes.complain(exit_codes.describe(error))
            ctx.exit(exit_codes.exit_code(error))
        return outcome


@click.group(
    "pyclient",
    cls=RootGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EPILOG,
)
@click.version_option(__version__, "-V", "--version", message="kafka-pyclient %(version)s")
@root_options
def root() -> None:
    """Kafka from the command line."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code of the process."""
    try:
        outcome = root.main(
            None if arguments is None else list(arguments),
            prog_name="pyclient",
            standalone_mode=False,
        )
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2
            error.show()
            return error.exit_code
        where = error.ctx.command_path if error.ctx else "pyclient"
        text = error.format_message()
        exit_codes.complain(exit_codes.with_hint(text, f"{where} --help"))
        return error.exit_code
    except click.ClickException as error:
        exit_codes.complain(error.format_message())
        return error.exit_code
    except click.Abort:
        return exit_codes.INTERRUPTED
    return outcome if isinstance(outcome, int) else exit_codes.OK
