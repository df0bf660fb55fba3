"""A server that already runs, named by its address: measured as it stands, never restarted."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from httpmark.harness import resources, wire
from httpmark.harness.model import HarnessError, Server

_HOST_AND_PORT = re.compile(r"[^/\s]+:\d+/?")
_PORTS = {"http": 80, "https": 443}


class Standing:
    """The counterpart of a started server: starting and stopping it is not ours."""

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
        self._is_local = ipaddress.ip_address(address).is_loopback
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
        return resources.tree(resources.listeners(self.port)) if self._is_local else []

    def alive(self) -> bool:
        return wire.port_taken(self.address, self.port)

    def exit_reason(self) -> str:
        return f"nothing answers at {self.name}: is the server running?"

    def log_tail(self, lines: int = 0) -> str:
        return ""

    def stop(self) -> None:
        """Not ours to stop."""


def parse(text: str, *, allow_remote: bool) -> Standing | None:
    """Read ``http://host:port/path``, ``https://…`` or ``host:port``; None where it is a name.

    The host is an IP address or localhost: a load is laid on one machine, not on what a name means
    this minute.

    :raises HarnessError: it is an address that cannot be used, or another machine without leave.
    """
    if "://" not in text and not _HOST_AND_PORT.fullmatch(text):
        return None
    split = urlsplit(text if "://" in text else f"http://{text}")
    if split.scheme not in _PORTS:
        raise HarnessError(f"{text}: http:// and https:// can be loaded")
    try:
        port = split.port or _PORTS[split.scheme]
    except ValueError:
        raise HarnessError(f"{text}: the port must be a number from 1 to 65535") from None
    host = "127.0.0.1" if split.hostname == "localhost" else split.hostname or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise HarnessError(f"{text}: write the host as an IP address") from None
    if not local and not allow_remote:
        raise HarnessError(f"{text} is not this machine: add --allow-remote if you may load it")
    path = split.path + (f"?{split.query}" if split.query else "")
    return Standing(
        text,
        address=host,
        port=port,
        is_tls=split.scheme == "https",
        path=None if path in ("", "/") and "://" not in text else path or "/",
    )
