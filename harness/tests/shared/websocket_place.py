"""The reference server with TLS, for tests of its WebSocket."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import trustme

from httpmark.harness.tests.shared.native_server import listening
from httpmark.harness.tests.shared.ports import own_port


@dataclass(frozen=True)
class Place:
    """Where it listens, and who signed its certificate."""

    port: int
    tls_port: int
    authority: Path

    def connect(self, *, tls: bool) -> socket.socket:
        wire = socket.create_connection(("127.0.0.1", self.tls_port if tls else self.port))
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context().wrap_socket(wire, server_hostname="localhost") if tls else wire

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))


@contextlib.contextmanager
def serving(folder: Path, *more: str) -> Iterator[Place]:
    """The server with more options; its key and certificate lie in ``folder``."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(str(folder / "chain.pem"), append=True)
    tls_port = own_port()
    options = (
        "--tls-port", str(tls_port), "--tls-cert", str(folder / "chain.pem"),
        "--tls-key", str(folder / "key.pem"), *more,
    )  # fmt: skip
    with listening("server", *options) as address:
        port = urlsplit(address).port
        assert port is not None
        yield Place(port, tls_port, folder / "ca.pem")
