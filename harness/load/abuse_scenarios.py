"""The kinds of abuse, as data: what each abuser sends, how often, and how many there are."""

from __future__ import annotations

import enum

import msgspec

from httpmark.harness.servers.abusive_clients import Manner

_ASKED_FIELDS = 100_000
_TRICKLE_S = 0.5
_CONTENT_BYTES = 1_000_000_000


class Needs(enum.StrEnum):
    """What a server has to speak for a kind of abuse."""

    HTTP = "hello"
    TLS = "tls"
    WEBSOCKET = "websocket"


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of abuse.

    ``{path}`` and ``{host}`` in the texts are those of the target.
    """

    name: str
    title: str
    clients: int
    opening: str = ""
    repeated: str | bytes = ""  # after the opening, again and again
    every_s: float = 0.0  # 0: as fast as the server takes it
    reads: bool = True
    awaits_answer: bool = False  # to the opening
    beginning: bytes = b""  # once, after the opening and its answer
    per_second: float | None = None  # connections that are opened and closed, with nothing sent
    greets: bool = False  # a TLS ClientHello, left when the server has answered
    fills_descriptors: bool = False
    needs: Needs = Needs.HTTP

    def manner(self, *, path: str, host: str) -> Manner:
        """What each abuser does to one target."""

        def filled(text: str | bytes) -> bytes:
            if isinstance(text, bytes):
                return text
            return text.replace("{path}", path).replace("{host}", host).encode("latin-1")

        return Manner(
            opening=filled(self.opening),
            beginning=self.beginning,
            repeated=filled(self.repeated),
            every_s=self.every_s,
            reads=self.reads,
            awaits_answer=self.awaits_answer,
            greets=self.greets,
        )


_GET = "GET {path} HTTP/1.1\r\nHost: {host}\r\n"
_POST = "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\n"
_CHUNKED = _POST + "Transfer-Encoding: chunked\r\n\r\n"
_UPGRADE = (
    "GET /websocket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
# Frames of one masked byte (RFC 6455 5.4): one begins a message, the other continues it.
_FIRST_FRAGMENT = b"\x01\x81\x00\x00\x00\x00x"
_FRAGMENT = b"\x00\x81\x00\x00\x00\x00x"

SCENARIOS = (
    Scenario(
        name="slow-heads",
        title="500 connections send one byte of a head every half second",
        clients=500,
        opening=_GET + "X-Slow: ",
        repeated="a",
        every_s=_TRICKLE_S,
    ),
    Scenario(
        name="slow-bodies",
        title="500 connections send one byte of content every half second",
        clients=500,
        opening=_POST + f"Content-Length: {_CONTENT_BYTES}\r\n\r\n",
        repeated="a",
        every_s=_TRICKLE_S,
    ),
    Scenario(
        name="slow-readers",
        title="200 connections ask as fast as they can and read no answer",
        clients=200,
        repeated=(_GET + "\r\n") * 50,
        reads=False,
    ),
    Scenario(
        name="tiny-chunks",
        title="50 connections send content in chunks of one byte",
        clients=50,
        opening=_CHUNKED,
        repeated="1\r\nx\r\n" * 2_000,
    ),
    Scenario(
        name="chunk-extensions",
        title="50 connections send 1,000 bytes of extension with each byte of content",
        clients=50,
        opening=_CHUNKED,
        repeated=("1;e=" + "x" * 997 + "\r\nx\r\n") * 16,
    ),
    Scenario(
        name="many-fields",
        title="20 connections send requests of 100,000 fields",
        clients=20,
        repeated=_GET + "a:b\r\n" * _ASKED_FIELDS + "\r\n",
    ),
    Scenario(
        name="connects",
        title="10,000 connections a second are opened and closed",
        clients=1,
        per_second=10_000,
    ),
    Scenario(
        name="idle",
        title="connections are opened and say nothing, up to the limit of descriptors",
        clients=20_000,
        fills_descriptors=True,
    ),
    Scenario(
        name="tls-handshakes",
        title="50 connections begin TLS handshakes, each left when the server has answered",
        clients=50,
        greets=True,
        needs=Needs.TLS,
    ),
    Scenario(
        name="websocket-fragments",
        title="50 connections send fragments of one byte of a message that never ends",
        clients=50,
        opening=_UPGRADE,
        awaits_answer=True,
        beginning=_FIRST_FRAGMENT,
        repeated=_FRAGMENT * 2_000,
        needs=Needs.WEBSOCKET,
    ),
)
BY_NAME = {one.name: one for one in SCENARIOS}
