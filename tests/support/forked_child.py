"""Runs a function in a forked child process."""

import os
from collections.abc import Callable


def told_by_child(act: Callable[[], object]) -> str:
    """What a function returns or raises in a forked child, as `repr` shows it."""
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = repr(act())
        except BaseException as error:  # noqa: BLE001  the child must not return into pytest
            text = repr(error)
        os.write(told, text.encode())
        os._exit(0)
    os.close(told)
    with os.fdopen(heard, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text
