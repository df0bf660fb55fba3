"""Every server of images/ starts and answers what its manifest says it can."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from httpmark.harness.model.cases import FILE_TEXT, SECRET, SECRET_TEXT
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.servers import certificates, manifests, sockets, starting
from httpmark.harness.servers import running as servers_running
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.pytest_rules import required

ASK_DEADLINE_S = 5.0
HELLO = b"Hello World!"
SERVERS = {one.name: one for one in manifests.servers()}
BROUGHT = {"kourier", "lithium", "ring"}  # manifests only: the user brings them
BUILT = sorted(set(SERVERS) - BROUGHT)


def test_the_six_servers_are_there_and_one_is_the_control() -> None:
    assert set(BUILT) >= {
        "reference", "null", "go_net_http", "rust_hyper", "qhttpserver", "nginx",
    }  # fmt: skip
    assert [name for name in BUILT if SERVERS[name].control] == ["null"]


@pytest.mark.parametrize("name", SERVERS)
def test_each_server_can_be_started_both_ways(name: str) -> None:
    one = SERVERS[name]
    assert one.process is not None
    assert one.container is not None
    for recipe in (one.process, one.container):
        texts = " ".join([*recipe.start, *recipe.files.values()])
        assert "{endpoint}" in texts or ("{address}" in texts and "{port}" in texts)
        assert "{workers}" in texts


@pytest.mark.parametrize("name", sorted(BROUGHT))
def test_a_server_the_user_brings_says_what_to_bring(name: str) -> None:
    reason = starting.availability(SERVERS[name], "process")
    assert reason is True or f"{name}-server not found: put a program" in str(reason)


# --- the contract of each capability ----------------------------------------------------------


class Target:
    """A running server, and how to ask it."""

    def __init__(self, running: servers_running.Running, tls: Tls | None = None) -> None:
        self.running = running
        self.tls = tls
        self.host = f"{running.address}:{tls.port if tls else running.port}"

    @contextlib.contextmanager
    def connection(self) -> Iterator[http.client.HTTPConnection]:
        if self.tls is None:
            one = http.client.HTTPConnection(self.host, timeout=ASK_DEADLINE_S)
        else:
            trusted = ssl.create_default_context(cafile=self.tls.cert)
            one = http.client.HTTPSConnection(self.host, timeout=ASK_DEADLINE_S, context=trusted)
        try:
            yield one
        finally:
            one.close()

    def ask(
        self, method: str, path: str, content: Any = None, fields: dict[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        with self.connection() as one:
            one.request(
                method, path, body=content, headers=fields or {},
                encode_chunked=isinstance(content, list),
            )  # fmt: skip
            answer = one.getresponse()
            return answer, answer.read()


def answers_hello(target: Target) -> None:
    for path in ("/hello", "/", "/some/other", "/hello?query=1"):
        answer, content = target.ask("GET", path)
        assert (answer.status, content) == (200, HELLO), path
        assert answer.getheader("Content-Type", "").partition(";")[0] == "text/plain"
        assert answer.getheader("Content-Length") == "12"
        assert answer.version == 11
    answer, content = target.ask("POST", "/hello", b"abc")
    assert (answer.status, content) == (200, HELLO)
    pair = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n" * 2
    with target.connection() as one:
        one.connect()
        assert one.sock is not None
        one.sock.sendall(pair)
        received = b""
        while received.count(HELLO) < 2 and (piece := one.sock.recv(65536)):
            received += piece
        assert received.count(b"HTTP/1.1 200 OK\r\n") == 2


def answers_body(target: Target) -> None:
    for content in (b"hello", b"", bytes(range(256)) * 300):
        answer, got = target.ask("POST", "/body", content)
        assert (answer.status, got) == (200, content)
    answer, got = target.ask("POST", "/body", [b"hel", b"lo"])
    assert (answer.status, got) == (200, b"hello")


def answers_echo(target: Target) -> None:
    for query, parameters in (
        ("a=1&b=2", {"a": "1", "b": "2"}),
        ("hello=world", {"hello": "world"}),
        ("a=%41%20c&b=", {"a": "A c", "b": ""}),
    ):
        answer, content = target.ask("GET", f"/echo?{query}")
        assert answer.status == 200
        assert json.loads(content) == parameters


def answers_static(target: Target) -> None:
    answer, content = target.ask("GET", "/static/ok.html")
    assert answer.status == 200
    assert content == FILE_TEXT.encode()
    for path in (f"/static/../{SECRET}", f"/static/..%2f{SECRET}"):
        assert SECRET_TEXT.encode() not in target.ask("GET", path)[1]


def octets(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def pairs(value: list[list[str]]) -> list[tuple[bytes, bytes]]:
    return [
        (base64.b64decode(name, validate=True).lower(), base64.b64decode(field, validate=True))
        for name, field in value
    ]


def answers_mirror(target: Target) -> None:
    content = bytes(range(256))
    # One connection, so that its requests are counted.
    with target.connection() as one:
        for number, method in enumerate(("POST", "GET", "PUT", "DELETE", "PATCH", "OPTIONS"), 1):
            sent = content if method == "POST" else None
            one.request(method, "/mirror?a=%41&b", body=sent, headers={"X-Odd": "v w"})
            answer = one.getresponse()
            told = json.loads(answer.read())
            assert answer.status == 200, method
            assert octets(told["method"]) == method.encode()
            # A server may show the target in its normal form, in which %41 is A.
            assert octets(told["target"]) in (b"/mirror?a=%41&b", b"/mirror?a=A&b", None)
            assert octets(told["authority"]) in (target.host.encode(), None)
            assert octets(told["version"]) in (b"HTTP/1.1", None)
            assert octets(told["content"]) == (sent or b"")
            assert (b"x-odd", b"v w") in pairs(told["fields"])
            assert told["trailers"] in ([], None)
            assert told["request_number"] in (number, None)
    chunked = (
        f"POST /mirror HTTP/1.1\r\nHost: {target.host}\r\nTransfer-Encoding: chunked\r\n"
        "Trailer: X-T\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\nX-T: v\r\n\r\n"
    )
    received = sockets.ask(
        target.running.address, target.running.port, chunked.encode(), deadline_s=ASK_DEADLINE_S
    )
    assert received is not None
    told = json.loads(received.partition(b"\r\n\r\n")[2])
    assert octets(told["content"]) == b"hello"
    assert told["trailers"] is None or pairs(told["trailers"]) == [(b"x-t", b"v")]


# What reads the content before it calls a handler cannot answer without it.
CONTENT_FIRST = {"qhttpserver"}


def answers_behave(target: Target) -> None:
    began = time.monotonic()
    answer, _ = target.ask("GET", "/slow")
    assert answer.status == 200
    assert 0.5 <= time.monotonic() - began < 2.0

    began = time.monotonic()
    early = f"POST /early HTTP/1.1\r\nHost: {target.host}\r\nContent-Length: 10\r\n\r\n"
    received = sockets.ask(
        target.running.address, target.running.port, early.encode(), deadline_s=ASK_DEADLINE_S
    )
    if target.running.server.name in CONTENT_FIRST:
        assert not received
    else:
        assert received is not None
        assert received.startswith(b"HTTP/1.1 200 ")
        assert time.monotonic() - began < ASK_DEADLINE_S / 2

    with target.connection() as one:  # what has no content leaves the connection in step
        for path, status in (("/204", 204), ("/304", 304), ("/redirect", 302), ("/404", 404)):
            one.request("GET", path)
            answer = one.getresponse()
            content = answer.read()
            assert answer.status == status
            assert content == b"" or status in (302, 404)
            assert status != 304 or answer.getheader("ETag")
            assert status != 302 or answer.getheader("Location", "").endswith("/hello")
    for method in ("GET", "POST", "DELETE"):
        assert target.ask(method, "/404")[0].status == 404

    answer, content = target.ask("GET", "/big")
    assert (answer.status, len(content)) == (200, 1 << 20)

    assert target.ask("GET", "/get-only")[1] == HELLO
    with target.connection() as one:  # the answer to HEAD has no content, so the next is in step
        for method in ("HEAD", "GET"):
            one.request(method, "/get-only")
            answer = one.getresponse()
            assert (answer.status, answer.read()) == (200, HELLO if method == "GET" else b"")
    for method in ("POST", "DELETE", "OPTIONS"):
        answer, _ = target.ask(method, "/get-only")
        assert answer.status == 405
        allowed = {word.strip() for word in answer.getheader("Allow", "").split(",")}
        assert allowed == {"GET", "HEAD"}


def answers_tls(target: Target) -> None:
    answers_hello(target)
    with target.connection() as one:
        one.connect()
        assert isinstance(one.sock, ssl.SSLSocket)
        assert one.sock.version() in ("TLSv1.2", "TLSv1.3")


def answers_websocket(target: Target) -> None:
    with target.connection() as one:
        one.connect()
        assert one.sock is not None
        one.sock.sendall(
            b"GET /websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        received = b""
        while b"\r\n\r\n" not in received:
            received += one.sock.recv(65536)
        assert received.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        # RFC 6455 5.2: FIN and opcode, the mask bit and the length, the mask, the data.
        mask = b"\x01\x02\x03\x04"
        for opcode, length in ((0x81, 5), (0x82, 300), (0x82, 70_000)):
            data = bytes(number % 128 for number in range(length))
            masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            size = bytes((length,)) if length < 126 else b""
            if not size:
                width = 2 if length < 1 << 16 else 8
                size = bytes((126 if width == 2 else 127,)) + length.to_bytes(width)
            head = bytes((opcode,)) + bytes((size[0] | 0x80,)) + size[1:] + mask
            one.sock.sendall(head + masked)
            wanted = bytes((opcode,)) + size + data
            received = b""
            while len(received) < len(wanted) and (piece := one.sock.recv(65536)):
                received += piece
            assert received == wanted
        one.sock.sendall(b"\x88\x82\0\0\0\0\x03\xe8")
        received = one.sock.recv(65536)
        assert received == b"\x88\x02\x03\xe8"
        assert one.sock.recv(65536) == b""


CONTRACT = {
    "hello": answers_hello,
    "body": answers_body,
    "echo": answers_echo,
    "static": answers_static,
    "mirror": answers_mirror,
    "behave": answers_behave,
    "websocket": answers_websocket,
}


def unavailable(server: Server, how: str) -> str | None:
    """Why the server cannot be tried here; fails where HTTPMARK_REQUIRE says it must be."""
    reason = starting.availability(server, how)
    if reason is True:
        return None
    needs = {"docker"} if how == "docker" else set()
    if how == "process" and server.process is not None:
        needs = {need.command for need in server.process.needs if need.command}
    ours = any(need.startswith("httpmark-") for need in needs) and "CI" in os.environ
    if needs & required() or ours:
        pytest.fail(f"{server.name} must be available here: {reason}")
    return str(reason)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for this machine, of an authority of its own."""
    pair = certificates.make(tmp_path_factory.mktemp("certificate"), address="127.0.0.1")
    return Tls(port=0, cert=pair.certificate, key=pair.key)


# Their images take minutes to build: they are nightly, and the images of the others prove the
# same of containers on each change.
BUILT_FOR_MINUTES = {"go_net_http", "qhttpserver", "rust_hyper"}


def runtimes_of(name: str) -> list[Any]:
    """A server as a process and as a container, as parameters of a test."""
    marks = [pytest.mark.needs("docker")]
    if name in BUILT_FOR_MINUTES:
        marks.append(pytest.mark.nightly)
    return [pytest.param(name, "process"), pytest.param(name, "docker", marks=marks)]


@pytest.mark.process
@pytest.mark.parametrize(("name", "how"), [one for name in BUILT for one in runtimes_of(name)])
def test_a_server_answers_what_its_manifest_says(name: str, how: str, certificate: Tls) -> None:
    server = SERVERS[name]
    if reason := unavailable(server, how):
        pytest.skip(reason)
    starting.prepare(server, how, say=lambda line: None)
    tls = None
    if "tls" in server.capabilities:
        tls = msgspec.structs.replace(certificate, port=own_port())
    running = starting.start(
        server, how, address="127.0.0.1", port=own_port(), workers=2, cpus=None,
        run_id=f"images{os.getpid()}", tls=tls, conformance=True,
    )  # fmt: skip
    try:
        for capability in server.capabilities:
            if capability == "tls":
                answers_tls(Target(running, tls))
            else:
                CONTRACT[capability](Target(running))
        assert running.alive()
        assert running.version is not None or name == "null"
        if server.version[0].isdigit() and "newer" not in server.version and running.version:
            assert running.version.startswith(server.version)
    finally:
        running.stop()


@pytest.mark.parametrize(
    "how", ["process", pytest.param("docker", marks=pytest.mark.needs("docker"))]
)
def test_a_server_without_tls_is_not_asked_for_it(how: str, certificate: Tls) -> None:
    plain = msgspec.structs.replace(SERVERS["null"], capabilities=("hello",))
    with pytest.raises(HarnessError, match="null has no TLS"):
        starting.start(
            plain, how, address="127.0.0.1", port=own_port(), workers=1, cpus=None,
            run_id="x", tls=certificate,
        )  # fmt: skip


@pytest.mark.process
def test_the_limits_declared_for_the_reference_are_those_it_prints() -> None:
    server = SERVERS["reference"]
    if reason := unavailable(server, "process"):
        pytest.skip(reason)
    path = starting.binary(server)
    assert path is not None
    told = subprocess.run(
        [path, "--print-limits"], capture_output=True, text=True, check=True, timeout=10
    ).stdout
    printed = {line.split()[0]: int(line.split()[1]) for line in told.splitlines()}
    assert server.limits == {
        "request_target_bytes": printed["target-max"],
        "head_bytes": printed["head-max"],
        "fields": printed["field-lines-max"],
        "content_bytes": printed["body-max"],
    }
    assert server.timeouts == {
        "head_s": printed["head-timeout-ms"] / 1000,
        "content_s": printed["body-timeout-ms"] / 1000,
        "idle_s": printed["idle-timeout-ms"] / 1000,
        "write_s": printed["write-timeout-ms"] / 1000,
    }
