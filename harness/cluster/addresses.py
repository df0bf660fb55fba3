"""The word after ``--cluster``: where the workers are."""

from __future__ import annotations

import re

import msgspec

from httpmark.harness.model.errors import HarnessError

_FORMS = "tcp://HOST:PORT or tls://HOST:PORT (a scheduler), ssh:HOST1,HOST2, or local:N"
_SCHEDULER = re.compile(r"(?:tcp|tls)://(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})/?")
_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
_LOCAL_MAX = 64
_PORT_MAX = 65535


class Scheduler(msgspec.Struct, frozen=True):
    """A scheduler that runs already, with its workers."""

    url: str

    def __str__(self) -> str:
        return self.url


class Hosts(msgspec.Struct, frozen=True):
    """Hosts on which scheduler and workers are started by ssh; the scheduler on the first."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"ssh:{','.join(self.names)}"


class Local(msgspec.Struct, frozen=True):
    """Worker processes on this machine, for a try."""

    workers: int

    def __str__(self) -> str:
        return f"local:{self.workers}"


Address = Scheduler | Hosts | Local


def parse(word: str) -> Address:
    """What the word names.

    :raises HarnessError: it names nothing.
    """
    kind, _, rest = word.partition(":")
    if (found := _SCHEDULER.fullmatch(word)) and 0 < int(found[1]) <= _PORT_MAX:
        return Scheduler(word.rstrip("/"))
    if kind == "ssh":
        names = tuple(rest.split(","))
        if all(_HOST.fullmatch(name) and not name.startswith("-") for name in names):
            return Hosts(names)
    if kind == "local" and re.fullmatch(r"[0-9]{1,4}", rest) and 0 < int(rest) <= _LOCAL_MAX:
        return Local(int(rest))
    most = f" (N is at most {_LOCAL_MAX})" if kind == "local" else ""
    raise HarnessError(f"--cluster {word!r} names no cluster: write {_FORMS}{most}")
