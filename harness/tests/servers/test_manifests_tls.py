"""The reference server's TLS, by the command itself and the standard library's client."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from httpmark.harness.servers import binaries
from httpmark.harness.servers.certificates import Authority, Pair

DEADLINE_S = 20.0
ASK = b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


class Server:
    """httpmark-server with a TLS port, for as long as a test runs."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [binaries.need("server"), "--port", "0", "--tls-port", "0", "--workers", "1", *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        ports = [self.line() for _ in range(2)]
        tls = next(line for line in ports if line.endswith("(tls)"))
        self.port = int(tls.removesuffix(" (tls)").rpartition(":")[2])

    @property
    def output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def line(self) -> str:
        return self.output.readline().rstrip("\n")

    def connect(
        self,
        context: ssl.SSLContext,
        name: str = "localhost",
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)
        return context.wrap_socket(plain, server_hostname=name, session=session)

    def answers(self, context: ssl.SSLContext, name: str = "localhost") -> bool:
        """Whether a request on a connection of its own is answered 200, with a proper end."""
        with self.connect(context, name) as stream:
            stream.sendall(LAST)
            answer = b""
            while part := stream.recv(65536):  # raises where close_notify is missing (RFC 8446 6.1)
                answer += part
        return answer.startswith(b"HTTP/1.1 200 ")


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    with contextlib.ExitStack() as running:

        def start(*words: str) -> Server:
            server = Server(*words)
            running.callback(server.output.close)
            running.callback(server.process.wait)
            running.callback(server.process.terminate)
            return server

        yield start


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def pair_words(pair: Pair) -> tuple[str, ...]:
    return ("--tls-cert", pair.certificate, "--tls-key", pair.key)


def trusting(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.certificate)
    # The standard library is silent about an end without close_notify unless told otherwise.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    return context


def complaint(*words: str) -> str:
    done = subprocess.run(
        [binaries.need("server"), "--port", "0", "--tls-port", "0", *words],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.process
def test_versions_ciphers_groups_and_protocol(
    authority: Authority, serve: Callable[..., Server]
) -> None:
    pair = authority.server()
    server = serve(
        *pair_words(pair), "--tls-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256",
        "--tls-ciphersuites", "TLS_AES_128_GCM_SHA256", "--tls-groups", "P-256",
    )  # fmt: skip
    for version, name, cipher in (
        (ssl.TLSVersion.TLSv1_2, "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (ssl.TLSVersion.TLSv1_3, "TLSv1.3", "TLS_AES_128_GCM_SHA256"),
    ):
        context = trusting(authority)
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols(["h2", "http/1.1"])
        with server.connect(context) as stream:
            assert stream.version() == name
            assert (stream.cipher() or ("none",))[0] == cipher
            assert stream.selected_alpn_protocol() == "http/1.1"
        assert server.answers(context)
    context = trusting(authority)
    context.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLError, match="no application protocol"):
        server.connect(context)
    context = trusting(authority)
    context.set_ecdh_curve("secp384r1")
    with pytest.raises(ssl.SSLError):
        server.connect(context)
    context = trusting(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with pytest.raises(ssl.SSLError):
        server.connect(context)


@pytest.mark.process
@pytest.mark.parametrize(("pin", "wrong"), [("1.2", "TLSv1_3"), ("1.3", "TLSv1_2")])
def test_a_pinned_version_is_the_only_one(
    authority: Authority, serve: Callable[..., Server], pin: str, wrong: str
) -> None:
    server = serve(*pair_words(authority.server()), "--tls-min", pin, "--tls-max", pin)
    assert server.answers(trusting(authority))
    context = trusting(authority)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[wrong]
    with pytest.raises(ssl.SSLError):
        server.connect(context)


@pytest.mark.process
def test_the_host_asked_for_chooses_the_certificate(
    authority: Authority, serve: Callable[..., Server]
) -> None:
    first, second = authority.server("a.example"), authority.server("b.example", "*.c.example")
    server = serve(*pair_words(first), *pair_words(second))
    context = trusting(authority)
    for name in ("a.example", "b.example", "x.c.example"):
        assert server.answers(context, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        server.connect(context, "d.example")  # served with the first, which is not for it


@pytest.mark.process
def test_an_encrypted_key_and_its_password(
    authority: Authority, serve: Callable[..., Server], tmp_path: Path
) -> None:
    pair = authority.server(password=b"a secret")
    password = tmp_path / "password"
    words = (*pair_words(pair), "--tls-key-password-file", str(password))
    password.write_text("a secret\n")
    assert serve(*words).answers(trusting(authority))
    password.write_text("another")
    assert f"key {pair.key} is encrypted, and {password} does not open it" in complaint(*words)
    password.unlink()
    assert f"{password} does not open it" in complaint(*words)
    assert "no --tls-key-password-file is given" in complaint(*pair_words(pair))


@pytest.mark.process
def test_clients_that_must_or_may_say_who_they_are(
    authority: Authority, serve: Callable[..., Server], tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stranger = Authority(elsewhere).client()
    words = (*pair_words(authority.server()), "--tls-client-ca", authority.certificate)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for verify, nobody, unknown in (
            ("required", False, False),
            ("optional", True, False),
            ("off", True, True),
        ):
            server = serve(*words, "--tls-client-verify", verify)
            for pair, welcome in ((None, nobody), (authority.client(), True), (stranger, unknown)):
                context = trusting(authority)
                context.minimum_version = context.maximum_version = version
                if pair is not None:
                    context.load_cert_chain(*pair)
                if welcome:
                    assert server.answers(context)
                else:
                    with pytest.raises(OSError):  # an alert, or the close behind it
                        server.answers(context)


@pytest.mark.process
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_sessions_are_taken_up_again_where_tickets_are_given(
    authority: Authority, serve: Callable[..., Server], version: str
) -> None:
    words = pair_words(authority.server())
    for tickets in (0, 2):
        server = serve(*words, "--tls-tickets", str(tickets))
        context = trusting(authority)
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        with server.connect(context) as stream:
            stream.sendall(ASK)
            assert stream.recv(65536).startswith(b"HTTP/1.1 200 ")  # tickets of 1.3 came before
            session = stream.session
        assert bool(session and session.has_ticket) == (tickets > 0)
        if tickets == 0:
            continue
        with server.connect(context, session=session) as stream:
            assert stream.session_reused
            stream.sendall(ASK)
            assert stream.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.process
def test_sighup_reads_certificates_again(
    authority: Authority, serve: Callable[..., Server], tmp_path: Path
) -> None:
    live = Pair(str(tmp_path / "live.pem"), str(tmp_path / "live.key"))

    def install(pair: Pair) -> None:
        for source, target in zip(pair, live, strict=True):
            shutil.copy(source, target)

    install(authority.server("a.example"))
    server = serve(*pair_words(live))
    context = trusting(authority)
    with server.connect(context, "a.example") as old:
        install(authority.server("b.example"))
        os.kill(server.process.pid, signal.SIGHUP)
        assert server.line() == "certificates read again"
        assert server.answers(context, "b.example")
        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            server.connect(context, "a.example")
        # What cannot be used leaves the last good one in service.
        Path(live.certificate).write_text("no certificate")
        os.kill(server.process.pid, signal.SIGHUP)
        assert server.line().startswith("httpmark-server: certificates are kept as they are: ")
        assert server.answers(context, "b.example")
        old.sendall(LAST)  # who was connected has not noticed anything
        assert old.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.process
def test_an_expired_certificate_is_served_and_refused_by_the_client(
    authority: Authority, serve: Callable[..., Server]
) -> None:
    server = serve(*pair_words(authority.server(expired=True)))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        server.connect(trusting(authority))
