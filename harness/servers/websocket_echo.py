"""A WebSocket client of three messages: enough to see that a server sends them back (RFC 6455)."""

from __future__ import annotations

from httpmark.harness.servers.sockets import Connection

_FIN_TEXT, _FIN_BINARY, _FIN_CLOSE = 0x81, 0x82, 0x88
_MASK = b"\x01\x02\x03\x04"
_NORMAL = (1000).to_bytes(2)
# One of each form of the length (5.2): 7 bits, 16 bits, 64 bits.
_MESSAGES = ((_FIN_TEXT, 5), (_FIN_BINARY, 300), (_FIN_BINARY, 70_000))


def _frame(first: int, data: bytes, *, mask: bytes = b"") -> bytes:
    bit = 0x80 if mask else 0
    if len(data) < 126:
        size = bytes((bit | len(data),))
    elif len(data) < 1 << 16:
        size = bytes((bit | 126,)) + len(data).to_bytes(2)
    else:
        size = bytes((bit | 127,)) + len(data).to_bytes(8)
    sent = bytes(octet ^ mask[at % 4] for at, octet in enumerate(data)) if mask else data
    return bytes((first,)) + size + mask + sent


def text_frame(data: bytes, *, is_masked: bool = False) -> bytes:
    """A whole text message in one frame: masked as a client sends it, or as it comes back."""
    return _frame(_FIN_TEXT, data, mask=_MASK if is_masked else b"")


def _received(connection: Connection, count: int) -> bytes:
    received = b""
    while len(received) < count and (piece := connection.receive()):
        received += piece
    return received


def echo_messages(connection: Connection, host: str) -> str | None:
    """Open the WebSocket, send messages and Close; None, or what came instead.

    :raises OSError: nothing came until the deadline.
    """
    connection.send(
        f"GET /websocket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode("ascii")
    )
    head = b""
    while b"\r\n\r\n" not in head and (piece := connection.receive()):
        head += piece
    line, _, rest = head.partition(b"\r\n")
    if not line.startswith(b"HTTP/1.1 101 "):
        return f"the handshake got {line.decode('latin-1')!r} instead of 101"
    if head.partition(b"\r\n\r\n")[2]:
        return "something came before the first message"
    accepted = b"s3pplmbitxaq9kygzzhzrbk+xoo="  # of that key, by RFC 6455 1.3
    if accepted not in rest.lower():
        return "Sec-WebSocket-Accept is not that of the key"
    for first, length in _MESSAGES:
        data = bytes(number % 128 for number in range(length))
        connection.send(_frame(first, data, mask=_MASK))
        wanted = _frame(first, data)
        if _received(connection, len(wanted)) != wanted:
            return f"a message of {length} bytes did not come back as it was sent"
    connection.send(_frame(_FIN_CLOSE, _NORMAL, mask=_MASK))
    wanted = _frame(_FIN_CLOSE, _NORMAL)
    if _received(connection, len(wanted)) != wanted:
        return "Close was not answered"
    return None if connection.receive() == b"" else "something came after Close"
