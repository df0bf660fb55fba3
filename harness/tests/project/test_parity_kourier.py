"""What Kourier's server can be told, told to the reference server: a test for each option.

Each is named after its option; the table is docs/parity.md.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.reference_command import (
    DEADLINE_S,
    GET,
    LAST_GET,
    Served,
    chunks,
    get,
    one_answer,
    post,
    served,
    soon,
    status_of,
    to_the_end,
)

# Options of Kourier's server: sizes. Each is exact, and one more is refused.

SIZES = {
    "target-max": 64, "field-name-max": 32, "field-value-max": 48, "field-lines-max": 8,
    "trailer-lines-max": 3, "chunk-line-max": 24, "body-max": 500, "request-max": 1024,
}  # fmt: skip


@pytest.fixture(scope="module")
@starts_process
def small() -> Iterator[Served]:
    with served(*(f"--{name}={most}" for name, most in SIZES.items())) as server:
        yield server


@pytest.mark.process
def test_kourier_max_url_size(small: Served) -> None:
    for target in ("/" + "a" * 63, "/a?" + "b" * 61):
        assert small.status(get(target)) == 200
        assert small.status(get(target + "c")) == 414


@pytest.mark.process
def test_kourier_max_header_name_size(small: Served) -> None:
    assert small.status(get(fields=b"n" * 32 + b": v\r\n")) == 200
    assert small.status(get(fields=b"n" * 33 + b": v\r\n")) == 431


@pytest.mark.process
def test_kourier_max_header_value_size(small: Served) -> None:
    """The whitespace around the value counts, as in Kourier."""
    assert small.status(get(fields=b"n: " + b"v" * 46 + b" \r\n")) == 200
    assert small.status(get(fields=b"n: " + b"v" * 47 + b" \r\n")) == 431


@pytest.mark.process
def test_kourier_max_header_line_count(small: Served) -> None:
    assert small.status(get(fields=b"n: v\r\n" * 6)) == 200
    assert small.status(get(fields=b"n: v\r\n" * 7)) == 431


@pytest.mark.process
def test_kourier_max_trailer_name_size(small: Served) -> None:
    assert small.status(chunks(b"n" * 32 + b": v\r\n")) == 200
    assert small.status(chunks(b"n" * 33 + b": v\r\n")) == 431


@pytest.mark.process
def test_kourier_max_trailer_value_size(small: Served) -> None:
    assert small.status(chunks(b"n: " + b"v" * 46 + b" \r\n")) == 200
    assert small.status(chunks(b"n: " + b"v" * 47 + b" \r\n")) == 431


@pytest.mark.process
def test_kourier_max_trailer_line_count(small: Served) -> None:
    assert small.status(chunks(b"n: v\r\n" * 3)) == 200
    assert small.status(chunks(b"n: v\r\n" * 4)) == 431


@pytest.mark.process
def test_kourier_max_chunk_metadata_size(small: Served) -> None:
    """The size, its extensions, and CRLF."""
    assert small.status(chunks(line=b"1;" + b"e" * 20)) == 200
    assert small.status(chunks(line=b"1;" + b"e" * 21)) == 400


@pytest.mark.process
def test_kourier_max_body_size(small: Served) -> None:
    for size, status in ((500, 200), (501, 413)):
        assert small.status(post(b"x" * size)) == status
        in_chunks = b"fa\r\n" + b"x" * 250 + b"\r\n%x\r\n" % (size - 250) + b"x" * (size - 250)
        assert small.status(post(in_chunks + b"\r\n0\r\n\r\n", chunked=True)) == status


@pytest.mark.process
def test_kourier_max_request_size(small: Served) -> None:
    """All octets of the request: its head, the framing of its content, and the trailers."""
    head = len(post(b"", chunked=True))
    for total, status in ((1024, 200), (1025, 413)):
        ones = b"1\r\nx\r\n" * 100
        left = total - head - len(ones) - len(b"100\r\n\r\n") - len(b"0\r\n\r\n")
        content = ones + b"%03x\r\n" % left + b"x" * left + b"\r\n0\r\n\r\n"
        request = post(content, chunked=True)
        assert len(request) == total
        assert 100 + left <= SIZES["body-max"]
        assert small.status(request) == status


# Options of Kourier's server: time, connections, workers.


@pytest.mark.process
def test_kourier_idle_timeout() -> None:
    """Kourier answers 408 and closes, and so does this server where it is told to."""
    for words, status in ((("--idle-408",), 408), ((), 0)):
        with served("--idle-timeout-ms", "500", *words) as server:
            assert server.status(b"") == status
            answers = server.ask(GET)
            # The time begins anew with the answer; a slow client may have been too late for one.
            assert answers == b"" or answers.count(b"HTTP/1.1 408") == (status == 408)


@pytest.mark.process
def test_kourier_request_timeout() -> None:
    """It is not prolonged by what comes meanwhile."""
    words = ("--head-timeout-ms", "400", "--body-timeout-ms", "400", "--body-rate-min", "0")
    for begin in (b"GET /hello HTTP/1.1\r\nX: ", post(b"x" * 10000)[:-9999]):
        with served(*words) as server, server.connect() as wire:
            wire.sendall(begin)
            end = time.monotonic() + DEADLINE_S
            while not select.select([wire], [], [], 0.02)[0] and time.monotonic() < end:
                wire.sendall(b"x")
            assert status_of(to_the_end(wire)) == 408


@pytest.mark.process
def test_kourier_max_connection_count() -> None:
    with served("--connections-max", "2") as server:
        with server.connect() as one, server.connect() as other:
            for wire in (one, other):
                wire.sendall(GET)
                assert status_of(one_answer(wire)) == 200
            assert server.status(b"") == 503
            one.sendall(GET)
            assert status_of(one_answer(one)) == 200, "those that are open stay"
        assert soon(lambda: server.status(LAST_GET) == 200)


@pytest.mark.process
def test_kourier_worker_count() -> None:
    """Each worker has a listener of its own, and all of them answer."""
    with served("--metrics", workers=3) as server:
        assert len(waiting(server.port)) == 3

        def accepted() -> list[bytes]:
            counters = server.ask(get("/metrics"))
            return re.findall(rb"accepted_total\{worker=\"\d\"\} (\d+)", counters)

        assert len(accepted()) == 3
        assert soon(lambda: b"0" not in accepted())


@pytest.mark.process
def test_kourier_tcp_server_backlog_size() -> None:
    """So many connections wait, and one more, while nobody accepts."""
    look_at_backlog(3, most=4)
    look_at_backlog(4096, most=20)


def look_at_backlog(backlog: int, *, most: int) -> None:
    """Of 20 connections."""
    with served("--backlog", str(backlog)) as server, contextlib.ExitStack() as wires:
        os.kill(server.pid, signal.SIGSTOP)
        assert soon(lambda: is_stopped(server.pid))
        for _ in range(20):
            wire = wires.enter_context(socket.socket())
            wire.setblocking(False)
            wire.connect_ex(("127.0.0.1", server.port))
        assert soon(lambda: waiting(server.port) == [most])
        assert waiting(server.port) == [most], "and no more"
        os.kill(server.pid, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Whether no thread of a process runs any more."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def waiting(port: int) -> list[int]:
    """Connections that wait to be accepted, for each listener of a port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [row for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]
    return [int(row[4].partition(":")[2], 16) for row in mine]


# Options of Kourier's server: TLS.


@dataclass(frozen=True)
class Keys:
    """Files with certificates."""

    words: tuple[str, ...]
    authority: str
    client: str
    stranger: str
    far_client: str


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    authority = trustme.CA()
    own = authority.issue_cert("localhost")
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    far = authority.create_child_ca().create_child_ca()
    for name, signer in (("client", authority), ("stranger", trustme.CA()), ("far", far)):
        pem = signer.issue_cert("me@example.org").private_key_and_cert_chain_pem
        pem.write_to_path(str(folder / f"{name}.pem"))
    pair = str(folder / "own.pem")
    return Keys(
        ("--tls-port", "0", "--tls-cert", pair, "--tls-key", pair),
        *(str(folder / f"{name}.pem") for name in ("ca", "client", "stranger", "far")),
    )


def secure(keys: Keys, shown: str = "") -> ssl.SSLContext:
    """A client, and the certificate that it shows."""
    context = ssl.create_default_context(cafile=keys.authority)
    if shown:
        context.load_cert_chain(shown)
    return context


def spoken(server: Served, context: ssl.SSLContext) -> tuple[str, str] | None:
    """Version and cipher of a connection on which a request was answered; None without one."""
    try:
        with (
            socket.create_connection(("127.0.0.1", server.tls_port), DEADLINE_S) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as wire,
        ):
            wire.sendall(GET)
            assert status_of(one_answer(wire)) == 200
            cipher = wire.cipher()
            assert cipher is not None
            return str(wire.version()), cipher[0]
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return None


@pytest.mark.process
def test_kourier_tls_version(keys: Keys) -> None:
    """1.2 alone, from 1.2 on, 1.3 alone."""
    for words, taken in (
        (("--tls-max", "1.2"), {"TLSv1.2"}),
        ((), {"TLSv1.2", "TLSv1.3"}),
        (("--tls-min", "1.3"), {"TLSv1.3"}),
    ):
        with served(*keys.words, *words) as server:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                client = secure(keys)
                client.minimum_version = client.maximum_version = version
                found = spoken(server, client)
                name = version.name.replace("_", ".")
                assert (found is not None) == (name in taken), (words, name)
                assert found is None or found[0] == name


@pytest.mark.process
def test_kourier_tls_ciphers(keys: Keys) -> None:
    words = (
        "--tls-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256",
    )  # fmt: skip
    with served(*keys.words, *words) as server:
        client = secure(keys)
        assert spoken(server, client) == ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256")
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        assert spoken(server, client) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")
        client.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        assert spoken(server, client) is None


@pytest.mark.process
def test_kourier_tls_groups(keys: Keys) -> None:
    with served(*keys.words, "--tls-groups", "P-384:P-521") as server:
        for curve, is_taken in (("secp384r1", True), ("secp521r1", True), ("prime256v1", False)):
            client = secure(keys)
            client.set_ecdh_curve(curve)
            assert (spoken(server, client) is not None) is is_taken, curve


@pytest.mark.process
def test_kourier_tls_client_verification(keys: Keys) -> None:
    """Not asked for, asked for, and wanted: with none, one of the authority, one of another."""
    for choice, taken in (
        ("off", (True, True, True)),
        ("optional", (True, True, False)),
        ("required", (False, True, False)),
    ):
        words = ("--tls-client-verify", choice, "--tls-client-ca", keys.authority)
        with served(*keys.words, *words) as server:
            found = [
                spoken(server, secure(keys, shown)) for shown in ("", keys.client, keys.stranger)
            ]
            assert tuple(one is not None for one in found) == taken, choice


@pytest.mark.process
def test_kourier_tls_client_verification_depth(keys: Keys) -> None:
    """Two certificates stand between this client's and the authority's."""
    words = ("--tls-client-verify", "required", "--tls-client-ca", keys.authority)
    for depth, is_taken in ((1, False), (2, True)):
        with served(*keys.words, *words, "--tls-client-depth", str(depth)) as server:
            assert spoken(server, secure(keys, keys.client)) is not None
            assert (spoken(server, secure(keys, keys.far_client)) is not None) is is_taken


@pytest.mark.process
def test_kourier_tls_key_password(keys: Keys, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    pem = Path(keys.words[-1]).read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"a secret"),
        )
    )
    password = tmp_path / "password"
    words = (*keys.words[:-1], str(locked), "--tls-key-password-file", str(password))
    password.write_text("a secret\n")
    with served(*words) as server:
        assert spoken(server, secure(keys)) is not None
    password.write_text("another\n")
    program = [str(binaries.need("server")), "--port", "0", *words]
    wrong = subprocess.run(program, capture_output=True, text=True, check=False, timeout=30)
    assert wrong.returncode == 2
    assert "does not open it" in wrong.stderr
