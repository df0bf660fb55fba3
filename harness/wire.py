"""The only Python sockets: is a port free, does a server answer, what came back.

Load and corpora never pass through here; the native probe and generator carry those.
"""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import time

_PORTS_TRIED = 500
_RECEIVE_OCTETS = 65536
_ANSWER_OCTETS_MAX = 1 << 20


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port nobody listens on, below the range the kernel gives to outgoing connections.

    A port of the ephemeral range could be taken by any connection between this answer and the
    server's bind, so the search starts below it.

    :raises OSError: no port of the range could be bound.
    """
    # From a random place, so that runs side by side do not choose alike.
    ports = list(range(18080, 28080))
    random.shuffle(ports)
    for port in ports[:_PORTS_TRIED]:
        if not port_taken(address, port):
            return port
    raise OSError(errno.EADDRINUSE, f"no free port found from 18080 to 28079 on {address}")


def port_taken(address: str, port: int) -> bool:
    """Whether a server that binds ``address:port`` now would be refused."""
    with socket.socket(_family(address), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return True
            raise
    return False


def ask(address: str, port: int, octets: bytes, *, deadline_s: float) -> bytes | None:
    """Send ``octets`` on a fresh connection; what came back until the deadline or the close.

    Returns as soon as the answer holds a whole header section whose Content-Length is satisfied.
    ``None`` when the connection was refused; ``b""`` when nothing came.
    """
    end = time.monotonic() + deadline_s
    received = bytearray()
    with socket.socket(_family(address), socket.SOCK_STREAM) as talk:
        talk.settimeout(max(deadline_s, 0.001))
        try:
            talk.connect((address, port))
            if talk.getsockname() == talk.getpeername():
                # Where nobody listens on an ephemeral port, TCP may connect a socket to itself.
                return None
            talk.sendall(octets)
            while len(received) < _ANSWER_OCTETS_MAX and not _complete(received):
                left = end - time.monotonic()
                if left <= 0:
                    break
                talk.settimeout(left)
                piece = talk.recv(_RECEIVE_OCTETS)
                if not piece:
                    break
                received += piece
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            pass
        # Resetting instead of closing keeps the port out of TIME_WAIT.
        with contextlib.suppress(OSError):
            talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return bytes(received)


def _complete(received: bytearray) -> bool:
    """Whether a header section and the content it announces by Content-Length are there."""
    head_end = received.find(b"\r\n\r\n")
    if head_end < 0:
        return False
    for line in received[:head_end].split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length" and value.strip().isdigit():
            return len(received) >= head_end + 4 + int(value.strip())
    return False
