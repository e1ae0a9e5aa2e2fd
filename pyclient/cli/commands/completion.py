"""`pyclient completion`: the script that a shell completes commands and options by."""

from typing import Final

import click
from click.shell_completion import get_completion_class

_INSTALL: Final = {
    "bash": "echo 'eval \"$(pyclient completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(pyclient completion zsh)\"' >> ~/.zshrc",
    "fish": "pyclient completion fish > ~/.config/fish/completions/pyclient.fish",
}


@click.command(
    "completion",
    epilog="\b\nTo install it:\n" + "\n".join(f"  {line}" for line in _INSTALL.values()),
)
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "pyclient", "_PYCLIENT_COMPLETE").source())
