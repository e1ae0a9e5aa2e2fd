"""Why a client cannot be pickled: for multiprocessing's spawn and forkserver start methods."""


def not_picklable(client: object) -> TypeError:
    """The error for `__reduce__`: says what to do instead."""
    name = type(client).__name__
    return TypeError(
        f"{name} cannot be pickled or copied: its threads and connections belong to this process."
        f" Create a {name} in the child process instead of passing this one to it"
    )
