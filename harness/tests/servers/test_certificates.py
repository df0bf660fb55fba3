"""Throw-away certificates: who is trusted, what for, and until when."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers.certificates import Authority, Pair, make


def shake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A handshake over a socket pair; what the client thinks of it.

    :raises ssl.SSLError: the client will not have the server's certificate.
    """
    ends = socket.socketpair()
    for end in ends:
        end.settimeout(10)

    def serve() -> None:
        try:
            with server.wrap_socket(ends[0], server_side=True) as stream:
                stream.recv(1)
        except OSError:
            ends[0].close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ends[1], server_hostname=name):
            pass
    finally:
        ends[1].close()
        thread.join()


def serving(pair: Pair, password: str | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key, password)
    return context


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "localhost"])
def test_a_servers_certificate_names_this_machine(tmp_path: Path, name: str) -> None:
    authority = Authority(tmp_path)
    trusting = ssl.create_default_context(cafile=authority.certificate)
    shake(serving(authority.server()), trusting, name)
    pair = make(tmp_path, address="127.0.0.2")
    for trusted in ("127.0.0.2", name):  # its own file is enough to trust it
        shake(serving(pair), ssl.create_default_context(cafile=pair.certificate), trusted)


def test_what_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    trusting = ssl.create_default_context(cafile=authority.certificate)
    for pair, reason in (
        (authority.server(expired=True), "expired"),
        (Authority(other).server(), "self-signed|unable to get"),
        (authority.server("elsewhere.example"), "IP address mismatch"),
    ):
        with pytest.raises(ssl.SSLCertVerificationError, match=reason):
            shake(serving(pair), trusting, "127.0.0.1")


def test_a_key_can_be_encrypted(tmp_path: Path) -> None:
    pair = Authority(tmp_path).server(password=b"secret")
    assert "ENCRYPTED" in Path(pair.key).read_text()
    serving(pair, "secret")
    with pytest.raises(ssl.SSLError):
        serving(pair, "wrong")


def test_a_clients_certificate_is_for_who_trusts_its_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    asking = serving(authority.server())
    asking.verify_mode = ssl.CERT_REQUIRED
    asking.load_verify_locations(authority.certificate)
    trusting = ssl.create_default_context(cafile=authority.certificate)
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2  # where a refusal is part of the handshake
    with pytest.raises(ssl.SSLError):
        shake(asking, trusting, "localhost")
    trusting.load_cert_chain(*authority.client())
    shake(asking, trusting, "localhost")


def test_what_is_no_name_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="no certificate for nowhere at all") as caught:
        make(tmp_path, address="nowhere at all")
    assert "\n" not in str(caught.value)
