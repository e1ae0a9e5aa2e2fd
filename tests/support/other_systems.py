"""Programs that hide what other systems lack, for a child process to run first.

What is masked is what those systems' Python documentation leaves out. It shows that nothing of
ours needs it; it does not show how those systems behave otherwise.
"""

_MASK = """
import os, signal, socket, sys
def without(owner, *names):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
"""

MACOS = f"""{_MASK}
without(os, "memfd_create", "eventfd", "posix_fallocate", "posix_fadvise", "sched_getaffinity")
without(signal, "sigtimedwait", "sigwaitinfo")
without(socket, "MSG_MORE")
import fcntl
# One kind of lock: what `flock` has locked, `lockf` finds locked, the owner's own locks included.
_flocked = set()
_flock, _lockf = fcntl.flock, fcntl.lockf
def flock(fd, operation):
    _flock(fd, operation)
    (_flocked.discard if operation & fcntl.LOCK_UN else _flocked.add)(fd)
def lockf(fd, *arguments):
    if fd in _flocked:
        raise BlockingIOError(35, "Resource temporarily unavailable")
    _lockf(fd, *arguments)
fcntl.flock, fcntl.lockf = flock, lockf
"""

WINDOWS = f"""{_MASK}
# The standard library has made its own choices first.
import logging, selectors, subprocess, tempfile, threading
without(
    os, "fork", "forkpty", "register_at_fork", "sysconf", "memfd_create", "sendfile", "pread",
    "pwrite", "uname", "getuid", "geteuid", "sched_getaffinity", "O_CLOEXEC", "eventfd",
    "posix_fallocate", "fchmod", "mkfifo", "getpgid", "killpg", "setsid", "WNOHANG",
)
class Absent:  # the C class below has them, and cannot be changed
    def __get__(self, *_):
        raise AttributeError("this system has no such method")
for name in ("sendmsg", "recvmsg", "recvmsg_into"):
    setattr(socket.socket, name, Absent())
without(signal, "pthread_sigmask", "sigtimedwait", "sigwait", "SIGHUP", "SIGKILL", "SIGALRM")
without(selectors, "EpollSelector", "PollSelector", "KqueueSelector", "DevpollSelector")
selectors.DefaultSelector = selectors.SelectSelector
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty"):
    sys.modules[name] = None
"""
