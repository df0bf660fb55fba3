"""A server that runs already, named by its address: measured as it is, never restarted."""

from __future__ import annotations

import ipaddress
import re

from httpmark.harness.http.address import Address, is_local, read
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import open_connections, proc_files, requested_path, sockets

_HOST_AND_PORT = re.compile(r"[^/\s]+:\d+/?")


class RunningTarget:
    """A server that runs already, with the methods of one that was started here."""

    runtime = "address"
    cgroup: str | None = None
    version: str | None = None
    image_digest: str | None = None
    server: Server

    def __init__(self, url: str, where: Address, server: Server | None = None) -> None:
        """:param server: what is known of it; without one its URL is its name."""
        self.url = url
        self.address = where.address
        self.port = where.port
        self.host = where.host
        self.tls_port = where.port if where.tls else None
        self.path = requested_path.of_address(where)
        self._is_local = is_local(where.address)
        self.server = server or Server(
            name=url,
            title=url,
            language="unknown",
            version="",
            homepage="",
            capabilities=("hello", "tls") if where.tls else ("hello",),
            ready_path=self.path or "/hello",
        )

    @property
    def name(self) -> str:
        return self.server.name

    def pids(self) -> list[int]:
        """Its processes, where it runs on this machine and we may see them."""
        return proc_files.tree(self.trees())

    def trees(self) -> list[int]:
        """The processes that listen; a process that they start and detach from is not seen.

        A child that holds its parent's listener may end at any moment, so only its parent counts.
        """
        if not self._is_local:
            return []
        return proc_files.topmost(open_connections.listeners(self.port, self.address))

    def alive(self) -> bool:
        if not self._is_local:
            return sockets.takes_connection(self.address, self.port)
        return sockets.port_taken(self.address, self.port)  # it sees no connection for that

    def status(self, path: str) -> int:
        """The status that one plain GET gets; 0 if there is no answer."""
        return requested_path.status(self.address, self.port, path, tls=self.tls_port is not None)

    def ending(self) -> str:
        return "it takes no connection any more"

    def exit_reason(self) -> str:
        return f"nothing answers at {self.url}: is the server running?"

    def log_tail(self, lines: int = 0) -> str:
        return ""

    def stop(self) -> None:
        """Do nothing: the server was not started here."""


def is_address(text: str) -> bool:
    """Whether a word is the address of a server that runs already, and no name."""
    return "://" in text or _HOST_AND_PORT.fullmatch(text) is not None


def parse(text: str, *, allow_remote: bool) -> RunningTarget | None:
    """Read ``http://host:port/path``, ``https://…`` or ``host:port``; None where it is a name.

    :raises HarnessError: as :func:`located`.
    """
    if not is_address(text):
        return None
    return RunningTarget(text, located(text, allow_remote=allow_remote))


def of_server(server: Server, *, allow_remote: bool) -> RunningTarget:
    """The target that a server with a ``url`` is.

    :raises HarnessError: as :func:`located`.
    """
    return RunningTarget(server.url, located(server.url, allow_remote=allow_remote), server)


def located(text: str, *, allow_remote: bool) -> Address:
    """Where a server that runs already listens.

    The host is an IP address or localhost, as the addresses of a host name can change between two
    samples.

    :raises HarnessError: the address cannot be used, or is of another machine and ``allow_remote``
        is not set.
    """
    where = read(text, allow_remote=allow_remote)
    if where.unix:
        raise HarnessError(f"{text}: a Unix socket cannot be measured: write http://HOST:PORT/")
    try:
        ipaddress.ip_address(where.address)
    except ValueError:
        raise HarnessError(f"{text}: write the host as an IP address") from None
    return where
