"""WebSocket on the bytes that h11 leaves to its user: the handshake and the echo of RFC 6455."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Iterable

KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3
MESSAGE_BYTES_MAX = 1 << 20
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

Fields = list[tuple[bytes, bytes]]


def values(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value.strip(b" \t") for key, value in fields if key.lower() == name]


def words(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    members = b",".join(values(fields, name)).split(b",")
    return [word.strip(b" \t").lower() for word in members]


def is_asked_for(method: bytes, version: bytes, fields: Fields) -> bool:
    """Whether a request offers the upgrade (RFC 6455 4.1, RFC 9110 7.8)."""
    return (
        (method, version) == (b"GET", b"1.1")
        and b"websocket" in words(fields, b"upgrade")
        and b"upgrade" in words(fields, b"connection")
    )


def handshake(fields: Fields) -> tuple[int, Fields]:
    """The answer to an offer: 101, 426 for another version, 400 for a bad key (RFC 6455 4.2)."""
    switch = [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade")]
    if values(fields, b"sec-websocket-version") != [b"13"]:
        return 426, [*switch, (b"Sec-WebSocket-Version", b"13")]
    keys = values(fields, b"sec-websocket-key")
    try:
        is_key = len(keys) == 1 and len(base64.b64decode(keys[0], validate=True)) == 16
    except binascii.Error:
        is_key = False
    if not is_key:
        return 400, []
    accept = base64.b64encode(hashlib.sha1(keys[0] + KEY_SUFFIX).digest())
    return 101, [*switch, (b"Sec-WebSocket-Accept", accept)]


def frame(first: int, data: bytes) -> bytes:
    """A frame of the server, which is never masked (RFC 6455 5.2)."""
    length = len(data)
    if length < 126:
        return bytes((first, length)) + data
    if length < 1 << 16:
        return bytes((first, 126)) + length.to_bytes(2) + data
    return bytes((first, 127)) + length.to_bytes(8) + data


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begun: bytes) -> None:
    """Send each message back until the client closes or breaks the protocol.

    :param begun: what the client sent after the handshake and h11 has read.
    """
    buffer = bytearray(begun)

    async def take(count: int) -> bytes:
        while len(buffer) < count:
            piece = await reader.read(65536)
            if not piece:
                raise ConnectionError
            buffer.extend(piece)
        taken = bytes(buffer[:count])
        del buffer[:count]
        return taken

    def end(code: int) -> None:
        writer.write(frame(0x80 | CLOSE, code.to_bytes(2)))

    while True:
        first, second = await take(2)
        opcode, length = first & 0x0F, second & 0x7F
        if length > 125:
            length = int.from_bytes(await take(2 if length == 126 else 8))
        if first & 0x70 or not second & 0x80 or opcode not in (0, 1, 2, 8, 9, 10):
            end(1002)  # no extension is agreed on, and a client masks
            return
        if length > MESSAGE_BYTES_MAX:
            end(1009)
            return
        mask = await take(4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(await take(length)))
        if opcode == CLOSE:
            writer.write(frame(0x80 | CLOSE, data[:2]))
            return
        if opcode == PING:
            writer.write(frame(0x80 | PONG, data))
        elif opcode in (CONTINUATION, TEXT, BINARY):
            writer.write(frame(first, data))
        await writer.drain()
