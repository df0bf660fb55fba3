"""The only Python sockets: is a port free, does a server answer, what came back.

Load and corpora never pass through here; the native probe and generator carry those.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import itertools
import os
import select
import socket
import ssl
import time
from collections.abc import Callable

import msgspec

from httpmark.harness.http import response_reader

_PORTS = range(18080, 28080)
_PORTS_TRIED = 500
_PORTS_BETWEEN = 37  # from where one process begins to where the next one does
_drawn = itertools.count()
_CONNECT_S = 2.0
_HANDSHAKE_S = 0.5
_RECEIVE_BYTES = 65536
ANSWER_BYTES_MAX = (1 << 20) + (1 << 16)  # the content of /big, and a head
_TRICKLE_BYTES = 4096
_TRICKLE_S = 1.0
_FLOOD_BYTES = 1 << 16


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def resolved(name: str, port: int) -> str | None:
    """The IP address of a host name, or of an address itself; None where there is none.

    Of several the first that takes a connection: a name may have addresses nobody listens on.
    """
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses if len(addresses) > 1 else ():
        with contextlib.suppress(OSError), socket.create_connection((address, port), _CONNECT_S):
            return address
    return next(iter(addresses), None)


def is_here(address: str) -> bool:
    """Whether an IP address is one of this machine's own: what goes there comes from there."""
    with socket.socket(_family(address), socket.SOCK_DGRAM) as connection:
        try:
            connection.connect((address, 9))  # sends nothing
        except OSError:
            return False
        return bool(
            connection.getsockname()[0] == connection.getpeername()[0]
        ) or address.startswith("127.")


def takes_connection(address: str, port: int) -> bool:
    """Whether a TCP connection can be made to an address, which may be another machine's."""
    with contextlib.suppress(OSError), socket.create_connection((address, port), _CONNECT_S):
        return True
    return False


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port nobody listens on, below the range the kernel gives to outgoing connections.

    A port of the ephemeral range could be taken by any connection between this answer and the
    server's bind, so the search starts below it. No connection of an earlier server waits there to
    be forgotten, which would keep some servers off it for a minute (TIME_WAIT).

    :raises OSError: no port of the range could be bound.
    """
    # Each process begins at a place of its own and goes on where it stopped: two that draw at the
    # same time do not draw alike before either of them listens.
    begin = os.getpid() * _PORTS_BETWEEN
    for port in (_PORTS[(begin + next(_drawn)) % len(_PORTS)] for _ in range(_PORTS_TRIED)):
        if not port_taken(address, port, reuse=()):
            return port
    raise OSError(
        errno.EADDRINUSE, f"no free port found from {_PORTS[0]} to {_PORTS[-1]} on {address}"
    )


def listener(address: str, port: int) -> socket.socket:
    """A socket that listens, for who selects by itself; it does not block.

    :raises OSError: nobody can listen there.
    """
    found = socket.socket(_family(address), socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind((address, port))
    found.listen(128)
    found.setblocking(False)
    return found


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends that talk with each other; reading from the first never waits."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs


def connected(address: str, port: int) -> socket.socket:
    """A connection, for who selects by itself; it does not block, and sends without delay.

    :raises OSError: nobody takes it.
    """
    found = socket.create_connection((address, port), _CONNECT_S)
    at_once(found)
    return found


def handshake_s(address: str, port: int) -> float | None:
    """How long a TCP handshake takes: a round trip of the path, as kernels answer it. None where
    nobody takes the connection in time."""
    began = time.monotonic()
    try:
        socket.create_connection((address, port), _HANDSHAKE_S).close()
    except OSError:
        return None
    return time.monotonic() - began


def at_once(connection: socket.socket) -> None:
    """Let a connection not block, and send without delay."""
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def end_of_writing(connection: socket.socket) -> None:
    """Tell the other side that nothing more comes; harmless where it has gone."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


Socket = socket.socket


def port_taken(address: str, port: int, *, reuse: tuple[int, ...] = (socket.SO_REUSEADDR,)) -> bool:
    """Whether a server that binds ``address:port`` now would be refused.

    :param reuse: the options with which it binds.
    """
    with socket.socket(_family(address), socket.SOCK_STREAM) as probe:
        for option in reuse:
            probe.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return True
            raise
    return False


def port_left_by_sharer(address: str, port: int) -> bool:
    """Whether a port is kept only from those that do not share it (SO_REUSEPORT): the server whose
    connections wait there to be forgotten can listen again."""
    shared = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)
    return port_taken(address, port) and not port_taken(address, port, reuse=shared)


def ask(
    address: str,
    port: int,
    octets: bytes,
    *,
    deadline_s: float,
    unix: str | None = None,
    tls: bool = False,
    ca_file: str | None = None,
    tls_name: str | None = None,
) -> bytes | None:
    """Send ``octets`` on a fresh connection; what came back until the deadline or the close.

    Returns as soon as there is a final answer whose length or chunks are whole.
    ``None`` when the connection was refused, or no TLS session was agreed on; ``b""`` when nothing
    came.

    :param unix: the path of a Unix socket, instead of address and port.
    :param tls: in a TLS session; the certificate is verified against ``ca_file`` where given, as
        that of ``tls_name`` where that is not the address.
    """
    end = time.monotonic() + deadline_s
    received = bytearray()
    method = octets.partition(b" ")[0]
    family = socket.AF_UNIX if unix else _family(address)
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        connection.settimeout(max(deadline_s, 0.001))
        try:
            connection.connect(unix if unix else (address, port))
            if not unix and connection.getsockname() == connection.getpeername():
                # Where nobody listens on an ephemeral port, TCP may connect a socket to itself.
                return None
            if tls:
                connection = stack.enter_context(_session(connection, tls_name or address, ca_file))
            connection.sendall(octets)
            while len(received) < ANSWER_BYTES_MAX and not _complete(received, method):
                left = end - time.monotonic()
                if left <= 0:
                    break
                connection.settimeout(left)
                piece = connection.recv(_RECEIVE_BYTES)
                if not piece:
                    break
                received += piece
        except (ConnectionRefusedError, FileNotFoundError, ssl.SSLCertVerificationError):
            return None
        except ssl.SSLError:
            # After bytes it is an end like any other; before any, no session was agreed on.
            return bytes(received) if received else None
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            pass
        # Resetting instead of closing keeps the port out of TIME_WAIT.
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return bytes(received)


class Connection:
    """A connection on which several requests are asked, one after another.

    :param ca_file: speak TLS, and verify the certificate against this file.
    :raises OSError: nobody listens there, or no TLS session is agreed on.
    """

    def __init__(
        self, address: str, port: int, *, deadline_s: float, ca_file: str | None = None
    ) -> None:
        self._socket = socket.create_connection((address, port), timeout=deadline_s)
        self.tls_version: str | None = None
        if ca_file is not None:
            try:
                session = _session(self._socket, address, ca_file)
            except BaseException:
                self._socket.close()
                raise
            self._socket, self.tls_version = session, session.version()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        # Resetting instead of closing keeps the port out of TIME_WAIT.
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.close()

    def send(self, octets: bytes) -> None:
        """:raises OSError: the other side takes nothing until the deadline, or has closed."""
        self._socket.sendall(octets)

    def receive(self, *, deadline_s: float | None = None) -> bytes:
        """What comes next; empty where the other side has closed.

        :param deadline_s: another deadline for this one.
        :raises OSError: nothing comes until the deadline, or the connection was reset.
        """
        before = self._socket.gettimeout()
        self._socket.settimeout(before if deadline_s is None else deadline_s)
        try:
            return self._socket.recv(_RECEIVE_BYTES)
        finally:
            self._socket.settimeout(before)


def flood(
    address: str,
    port: int,
    octets: bytes,
    *,
    total: int,
    stall_s: float,
    look: Callable[[], None],
    unix: str | None = None,
) -> tuple[int, str]:
    """Send ``octets`` again and again without reading anything.

    Ends when ``total`` bytes are out (``sent``), when the other side has taken none for
    ``stall_s`` (``stalled``), or when it closed (``closed``).

    :param look: called at the end, while the connection still stands.
    :returns: the bytes sent, and how it ended.
    """
    block = memoryview(octets * max(1, _FLOOD_BYTES // len(octets)))
    family = socket.AF_UNIX if unix else _family(address)
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        # Little room for answers: what the kernel would hold for us is not the server's doing.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _FLOOD_BYTES)
        connection.settimeout(stall_s)
        sent = 0
        how = "sent"
        try:
            connection.connect(unix if unix else (address, port))
            while sent < total:
                # Always whole messages in order, wherever a write ended.
                start = sent % len(block)
                sent += connection.send(block[start:])
        except TimeoutError:
            how = "closed" if _hung_up(connection) else "stalled"
        except OSError:
            how = "closed"
        look()
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return sent, how


def _hung_up(connection: socket.socket) -> bool:
    """Whether the other side has closed, although what it sent is still to be read."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(0))


def trickle(
    address: str,
    port: int,
    octets: bytes,
    *,
    clients: int,
    seconds: float,
    look: Callable[[], None],
    unix: str | None = None,
) -> int:
    """Ask on many connections and read a byte of each answer a second.

    :param look: called at the end, while the connections still stand.
    :returns: how many connections the other side has neither closed nor refused by then.
    """
    family = socket.AF_UNIX if unix else _family(address)
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        connections: list[socket.socket] = []
        for _ in range(clients):
            connection = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _TRICKLE_BYTES)
            connection.settimeout(2.0)
            with contextlib.suppress(OSError):
                connection.connect(unix if unix else (address, port))
                connection.sendall(octets)
                connection.setblocking(False)
                connections.append(connection)
        while connections and time.monotonic() < end:
            time.sleep(max(0.0, min(_TRICKLE_S, end - time.monotonic())))
            connections = [connection for connection in connections if _takes_one(connection)]
        look()
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return len(connections)


def _takes_one(connection: socket.socket) -> bool:
    """Read one byte, if there is one; whether the connection stands."""
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


# Little room for answers: the server has to wait for the client soon.
_LATE_ROOM_BYTES = 1 << 14
_HEAD_END = b"\r\n\r\n"


class Ending(enum.StrEnum):
    """How reading ended."""

    WHOLE = "whole"  # all came that was wanted
    CLOSED = "closed"  # by the server, before that
    STUCK = "stuck"  # nothing more came, and it was not closed


class ReadLate(msgspec.Struct, frozen=True):
    """What a client got that reads late."""

    opening: bytes  # the head that answered the first bytes, where there were some
    received: bytes  # after it
    how: Ending


def read_late(
    address: str,
    port: int,
    octets: bytes,
    *,
    is_whole: Callable[[bytearray], bool],
    quiet_s: float,
    patience_s: float,
    opening: bytes = b"",
    unix: str | None = None,
) -> ReadLate:
    """Send, read nothing until the server has taken no byte for a while, then read and send on.

    :param octets: sent as far as the server takes them, the rest while it is read.
    :param is_whole: whether all that is wanted has come.
    :param quiet_s: seconds without a byte taken, or after the last byte, before reading begins.
    :param patience_s: seconds without a byte in either direction before the server is stuck.
    :param opening: sent first; the head that answers it is waited for.
    :raises OSError: no connection.
    """
    family = socket.AF_UNIX if unix else _family(address)
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LATE_ROOM_BYTES)
        connection.settimeout(_CONNECT_S)
        connection.connect(unix if unix else (address, port))
        head = _opened(connection, opening, patience_s) if opening else b""
        left = memoryview(octets)
        connection.settimeout(quiet_s)
        try:
            while left:
                left = left[connection.send(left[:_RECEIVE_BYTES]) :]
            time.sleep(quiet_s)
        except TimeoutError:
            pass  # it waits for us to read
        except OSError:
            pass  # it closed; what it sent before is still to be read
        return _read_all(connection, left, head, is_whole, patience_s)


def _opened(connection: socket.socket, opening: bytes, patience_s: float) -> bytes:
    """The head that answers the opening, and nothing after it."""
    connection.settimeout(patience_s)
    connection.sendall(opening)
    head = b""
    while not head.endswith(_HEAD_END) and (octet := connection.recv(1)):
        head += octet
    return head


def _read_all(
    connection: socket.socket,
    left: memoryview,
    head: bytes,
    is_whole: Callable[[bytearray], bool],
    patience_s: float,
) -> ReadLate:
    connection.setblocking(False)
    received = bytearray()
    how = Ending.STUCK
    while True:
        wanted = [connection] if left else []
        readable, writable, _ = select.select([connection], wanted, [], patience_s)
        if not readable and not writable:
            break
        try:
            if readable:
                piece = connection.recv(_RECEIVE_BYTES)
                received += piece
                if not piece:
                    how = Ending.CLOSED
                    break
                if is_whole(received):
                    how = Ending.WHOLE
                    break
            if writable:
                left = left[connection.send(left[:_RECEIVE_BYTES]) :]
        except BlockingIOError:
            continue
        except OSError:
            how = Ending.CLOSED
            break
    return ReadLate(head, bytes(received), how)


def _session(connection: socket.socket, name: str, ca_file: str | None) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file:
        context.load_verify_locations(ca_file)
    else:
        # Whose certificate it is matters to a browser; what it says in HTTP is judged either way.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection, server_hostname=name)


def _complete(received: bytearray, method: bytes) -> bool:
    """Whether a final answer is there with its whole content, as far as its framing says."""
    octets, at = bytes(received), 0
    while reading := response_reader.read_on(octets, at, method=method, ended=False):
        if reading.cut or reading.lost:
            return False
        if not reading.response.interim:
            return True
        at = reading.response.end
    return False
