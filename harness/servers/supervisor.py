"""Keeps one server process: starts it pinned, tells how it ended, and leaves nothing behind.

supervision.py starts it as a program of its own. It stands between the harness and the server
because the kernel's own means are not enough: a parent-death signal reaches only the server's first
process (nginx has workers) and is sent when the *thread* that forked ends. Here the harness holds
the write end of a pipe. The pipe closes when the harness ends, whatever ended it. As a child
subreaper this process inherits what the server forks, so it can end all of it.

It runs with ``python -I -S``: it starts fast, and the environment of the server cannot change what
it imports. So this package cannot be found, and the one module of it that is needed is loaded from
the folder of this file.

Arguments: LIFELINE_FD STATUS_FD GRACE_S CPUS SCRATCH COMMAND... (CPUS "-": not pinned). Writes
"pid N", then "exit N", "signal N" or "error TEXT", a line each, to STATUS_FD; and "left N" where N
processes that the server started had not ended a second after it.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing takes longer to import than all the rest
if TYPE_CHECKING:
    from httpmark.harness.servers import proc_files
else:
    # Last, so that no module of this folder hides one of the standard library.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import proc_files

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_DEADLINE_S = 5.0
_OTHERS_GRACE_S = 1.0  # between the end of the server's first process and that of its others
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def _become(status: int, cpus: str, words: list[str], parent: int) -> None:
    """In the child: execute the server's command, or write why that failed."""
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)
        if cpus != "-":
            os.sched_setaffinity(0, {int(word) for word in cpus.split(",")})
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.setpgid(0, 0)
        os.execvp(words[0], words)
    except (OSError, ValueError) as error:
        os.write(status, f"error {words[0]}: {error}\n".encode())
    os._exit(127)


def _reap(server: int, status: int, ended: list[str]) -> bool:
    """Wait for the children that have ended and write how the server ended.

    :returns: whether any child is left.
    """
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if pid == server:
            code = os.waitstatus_to_exitcode(how)
            text = f"exit {code}\n" if code >= 0 else f"signal {-code}\n"
            ended.append(text)
            with contextlib.suppress(OSError):
                os.write(status, text.encode())


def _wait_for_others(server: int, status: int, ended: list[str]) -> None:
    """Let what the server started end by itself, and tell what does not."""
    end = time.monotonic() + _OTHERS_GRACE_S
    while _reap(server, status, ended):
        if time.monotonic() >= end:
            left = proc_files.descendants(os.getpid())
            with contextlib.suppress(OSError):
                os.write(status, f"left {len(left)}\n".encode())
            return
        time.sleep(0.005)


def _kill_all(server: int, status: int, ended: list[str]) -> None:
    end = time.monotonic() + _KILL_DEADLINE_S
    while _reap(server, status, ended) and time.monotonic() < end:
        for pid in proc_files.descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _remove(folder: str) -> None:
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(place, name))
        for name in folders:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(place, name))
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def main(words: list[str]) -> int:
    lifeline, status, grace_s = int(words[0]), int(words[1]), float(words[2])
    cpus, scratch, command = words[3], words[4], words[5:]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGHUP):  # the harness decides when the server stops
        signal.signal(number, signal.SIG_IGN)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.set_wakeup_fd(wake_write)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    signal.signal(signal.SIGCHLD, lambda number, frame: None)

    parent = os.getpid()
    server = os.fork()
    if server == 0:
        os.set_inheritable(lifeline, False)
        os.set_inheritable(status, False)
        _become(status, cpus, command, parent)
    with contextlib.suppress(OSError):
        os.write(status, f"pid {server}\n".encode())

    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    ended: list[str] = []
    orphaned = False
    deadline: float | None = None
    while True:
        _reap(server, status, ended)
        if ended:
            break
        if deadline is None and (asked or orphaned):
            deadline = time.monotonic() + grace_s
            with contextlib.suppress(ProcessLookupError):
                os.kill(server, signal.SIGTERM)
        if deadline is not None and time.monotonic() >= deadline:
            break
        wait = None if deadline is None else max(1, int((deadline - time.monotonic()) * 1000))
        for descriptor, _ in poll.poll(wait):
            if descriptor == lifeline:
                orphaned = True
                poll.unregister(lifeline)
            else:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake_read, 4096)
    if ended and asked and not orphaned:
        _wait_for_others(server, status, ended)
    _kill_all(server, status, ended)
    if orphaned:
        _remove(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
