"""A server that runs already, named by its address: measured as it is, never restarted."""

from __future__ import annotations

import ipaddress
import re

from httpmark.harness.http.address import is_local, read
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

    def __init__(self, name: str, *, address: str, port: int, is_tls: bool, path: str | None):
        self.name = name
        self.address = address
        self.port = port
        self.tls_port = port if is_tls else None
        self.path = path
        self._is_local = is_local(address)
        self.server = Server(
            name=name,
            title=name,
            language="unknown",
            version="",
            homepage="",
            capabilities=("hello", "tls") if is_tls else ("hello",),
            ready_path=path or "/hello",
        )

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
        return sockets.port_taken(self.address, self.port)

    def status(self, path: str) -> int:
        """The status that one plain GET gets; 0 if there is no answer."""
        return requested_path.status(self.address, self.port, path, tls=self.tls_port is not None)

    def ending(self) -> str:
        return "it takes no connection any more"

    def exit_reason(self) -> str:
        return f"nothing answers at {self.name}: is the server running?"

    def log_tail(self, lines: int = 0) -> str:
        return ""

    def stop(self) -> None:
        """Do nothing: the server was not started here."""


def parse(text: str, *, allow_remote: bool) -> RunningTarget | None:
    """Read ``http://host:port/path``, ``https://…`` or ``host:port``; None where it is a name.

    The host is an IP address or localhost, as the addresses of a host name can change between two
    samples.

    :raises HarnessError: the address cannot be used, or is of another machine and ``allow_remote``
        is not set.
    """
    if "://" not in text and not _HOST_AND_PORT.fullmatch(text):
        return None
    where = read(text, allow_remote=allow_remote)
    try:
        ipaddress.ip_address(where.address)
    except ValueError:
        raise HarnessError(f"{text}: write the host as an IP address") from None
    return RunningTarget(
        text,
        address=where.address,
        port=where.port,
        is_tls=where.tls,
        path=requested_path.of_address(where),
    )
