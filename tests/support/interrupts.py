"""KeyboardInterrupt before any line of a function, as a signal handler may raise it."""

import inspect
import linecache
import sys

import pytest


def lines_of(functions, *more):
    """A test parameter for every line of these functions: (code, line, *more)."""
    names = [getattr(one, "__name__", str(one)) for one in more]
    return [
        pytest.param(
            function.__code__,
            line,
            *more,
            id="-".join([f"{function.__qualname__}+{line}", *names]),
        )
        for function in functions
        for line in range(1, len(inspect.getsource(function).splitlines()))
    ]


class Interrupt:
    """Raises KeyboardInterrupt before a line of a function runs, once."""

    def __init__(self, code, line, after=0):
        """`after`: how often the line runs first."""
        self.code = code
        self.line = code.co_firstlineno + line
        self.left = after
        self.happened = False
        self._is_with = linecache.getline(code.co_filename, self.line).lstrip().startswith("with ")
        self._inside = None

    def __enter__(self):
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _on_call(self, frame, event, _argument):
        return self._on_line if frame.f_code is self.code else None

    def _on_line(self, frame, event, _argument):
        if event == "line" and frame.f_lineno == self.line and not self.happened:
            if self._is_with and frame is self._inside:
                return self._on_line  # before `__exit__`, where no signal is handled
            self._inside = frame
            self.left -= 1
            if self.left < 0:
                self.happened = True
                raise KeyboardInterrupt
        return self._on_line
