"""Addresses of servers: read as people write them, and written."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import msgspec

from httpmark.harness.http import grammar
from httpmark.harness.model.errors import HarnessError

_PORTS = {"http": 80, "https": 443}


class Address(msgspec.Struct, frozen=True):
    """Where to connect to, and what else its URL says."""

    address: str  # or a host name
    port: int
    host: str  # the Host value
    unix: str | None = None  # the path of a Unix socket, instead of address and port
    tls: bool = False
    path: str = ""  # with its query; empty where none was written

    @property
    def name(self) -> str:
        """The host as it was written: the name that the certificate must be for."""
        return urlsplit(f"//{self.host}").hostname or self.address


def read(text: str, *, allow_remote: bool) -> Address:
    """Read ``http://host:port/``, ``https://host:port/``, ``unix:PATH`` or ``host:port``.

    :raises HarnessError: it is none of them, or it names another machine and that is not allowed.
    """
    if text.startswith("unix:"):
        if not (path := text[5:]):
            raise HarnessError(f"{text}: no path; write unix:/run/server.sock")
        return Address("localhost", 80, "localhost", unix=path)
    try:
        split = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError as error:  # a bracket that is not closed, or with no address in it
        raise HarnessError(f"{text}: {error}; write http://[::1]:8080/") from None
    if split.scheme not in _PORTS:
        raise HarnessError(f"{text}: only http://, https:// and unix: targets")
    try:
        port = _PORTS[split.scheme] if split.port is None else split.port
    except ValueError:
        port = 0
    if not port:
        raise HarnessError(f"{text}: the port must be a number from 1 to 65535")
    if not split.hostname:
        raise HarnessError(f"{text}: no host; write http://127.0.0.1:8080/")
    host = split.netloc.rpartition("@")[2]
    if grammar.HOST.fullmatch(host.encode("utf-8")) is None:
        raise HarnessError(f"{text}: {host!r} is no host; write http://127.0.0.1:8080/")
    name = "127.0.0.1" if split.hostname == "localhost" else split.hostname
    if not is_local(name) and not allow_remote:
        raise HarnessError(f"{text} is not this machine: add --allow-remote if you may test it")
    return Address(
        name,
        port,
        host,
        tls=split.scheme == "https",
        path=split.path + (f"?{split.query}" if split.query else ""),
    )


def is_local(name: str) -> bool:
    """Whether this is an address of the loopback interface; a host name is not."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def loopback(port: int) -> Address:
    """A server of our own on this machine."""
    return Address("127.0.0.1", port, endpoint("127.0.0.1", port))


def endpoint(address: str, port: int | str) -> str:
    """``127.0.0.1:8080`` or ``[::1]:8080``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def url(address: str, port: int | str, path: str, *, tls: bool) -> str:
    """``http://127.0.0.1:8080/hello``; the port is always written."""
    return f"{'https' if tls else 'http'}://{endpoint(address, port)}{path}"


def listening_at(address: str, port: int, unix: str | None) -> str:
    """Where a server listens, as :func:`read` reads it: ``host:port`` or ``unix:PATH``."""
    return f"unix:{unix}" if unix else endpoint(address, port)
