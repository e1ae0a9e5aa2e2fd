"""How `pyclient` starts, and how it completes what is typed."""

import os
import subprocess
import sys
from pathlib import Path

PYCLIENT = Path(sys.executable).parent / "pyclient"


def test_help_imports_no_client() -> None:
    script = (
        "import sys; from pyclient.cli.main import main; main(['--help']);"
        "print([name for name in sys.modules if name.startswith(("
        "'pyclient.consumer', 'pyclient.producer', 'pyclient.admin', 'pyclient.net',"
        " 'pyclient.protocol', 'broker_stub', 'rich', 'asyncio', 'ssl', 'pyarrow'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def completions(*words: str) -> set[str]:
    """What bash's completion script asks for, with the cursor at the last word."""
    environment = {
        **os.environ,
        "_PYCLIENT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run([PYCLIENT], env=environment, capture_output=True, text=True, check=True)
    return {line.partition(",")[2] for line in done.stdout.splitlines()}


def test_bash_completes_commands_options_and_choices() -> None:
    assert completions("pyclient", "dum") == {"dump-log"}
    assert completions("pyclient", "consume", "t", "--from") == {"--from-beginning"}
    assert completions("pyclient", "consume", "t", "--decode", "off") == {"offsets"}


def test_the_completion_script_is_valid_bash() -> None:
    script = subprocess.run(
        [PYCLIENT, "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    shown = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p pyclient"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "-F _pyclient_completion pyclient" in shown.stdout
