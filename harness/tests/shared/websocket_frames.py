"""Frames of RFC 6455 as octets: what a client sends, and what it wants to see of a server."""

from __future__ import annotations

KEY = bytes((0x37, 0xFA, 0x21, 0x3D))  # the one of RFC 6455 5.7
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
FIN = 0x80
HANDSHAKE = (
    b"GET /websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def _length(size: int, mask_bit: int) -> bytes:
    if size < 126:
        return bytes((mask_bit | size,))
    if size < 1 << 16:
        return bytes((mask_bit | 126,)) + size.to_bytes(2)
    return bytes((mask_bit | 127,)) + size.to_bytes(8)


def masked(first: int, payload: bytes = b"") -> bytes:
    """A frame of a client; ``first`` is its first octet."""
    stream = (KEY * (len(payload) // 4 + 1))[: len(payload)]
    mixed = int.from_bytes(payload) ^ int.from_bytes(stream)
    return bytes((first,)) + _length(len(payload), 0x80) + KEY + mixed.to_bytes(len(payload))


def plain(first: int, payload: bytes = b"") -> bytes:
    """A frame of a server."""
    return bytes((first,)) + _length(len(payload), 0) + payload


def text(payload: bytes = b"") -> bytes:
    return masked(FIN | TEXT, payload)


def binary(payload: bytes = b"") -> bytes:
    return masked(FIN | BINARY, payload)


def ping(payload: bytes = b"") -> bytes:
    return masked(FIN | PING, payload)


def pong(payload: bytes = b"") -> bytes:
    return masked(FIN | PONG, payload)


def close(code: int | None = 1000, reason: bytes = b"") -> bytes:
    return masked(FIN | CLOSE, b"" if code is None else code.to_bytes(2) + reason)


def parts(opcode: int, payloads: list[bytes], between: bytes = b"") -> bytes:
    """One message in several frames, with other frames between them."""
    last = len(payloads) - 1
    frames = [
        masked((opcode if at == 0 else CONTINUATION) | (FIN if at == last else 0), payload)
        for at, payload in enumerate(payloads)
    ]
    return between.join(frames)


def cut(payload: bytes, size: int) -> list[bytes]:
    return [payload[at : at + size] for at in range(0, len(payload), size)]
