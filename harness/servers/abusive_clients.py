"""Clients that abuse a server on purpose: the only sockets of ours that mean harm.

They run in a thread of their own, until they are stopped. What the server answers is thrown away.
Only :mod:`httpmark.harness.load.abuse` starts them, against a target that its user named.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import resource
import socket
import ssl
import threading
import time

import msgspec

_LINGER_NONE = b"\1\0\0\0\0\0\0\0"  # closing resets, and leaves no port in TIME_WAIT
_CONNECT_S = 3.0
_AGAIN_S = 0.1  # before a connection that was refused is tried again
_OPENING_MAX = 200  # connections that are being opened at the same time
_WRITE_BYTES = 1 << 16
_LITTLE_ROOM_BYTES = 1 << 14
_FLOOD_HELD = 500  # of a flood of connects: connections that are open at the same time
_FLOOD_TICK_S = 0.01
_DESCRIPTORS_KEPT = 400
_STOP_S = 5.0


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """What an abuser does on each of its connections, of which it opens one after another."""

    opening: bytes = b""
    beginning: bytes = b""  # once, after the opening and, if it is awaited, the answer
    repeated: bytes = b""
    every_s: float = 0.0  # 0: as fast as the server takes it
    reads: bool = True
    awaits_answer: bool = False
    greets: bool = False  # opens with a TLS ClientHello, and leaves when the server has answered


class Tally(msgspec.Struct, kw_only=True):
    """What the abusers have done so far."""

    opened: int = 0
    refused: int = 0
    held: int = 0
    held_max: int = 0
    sent_bytes: int = 0

    def open(self) -> None:
        self.opened += 1
        self.held += 1
        self.held_max = max(self.held_max, self.held)


def room() -> int:
    """How many connections this process can hold beside what else it needs.

    :returns: by its limit of descriptors, which is raised as far as it may be.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return max(1, soft - _DESCRIPTORS_KEPT)


def limit_descriptors(pid: int, most: int) -> int | None:
    """Limit the descriptors of a process of ours; the limit it had, None where it may not be."""
    try:
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(most, hard), hard))
    except (OSError, ValueError):
        return None
    return soft


def client_hello(name: str) -> bytes:
    """What a TLS client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = _context().wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Client(asyncio.Protocol):
    """One connection: whether it stands, and whether it takes more."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.answered = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=_WRITE_BYTES)

    def data_received(self, data: bytes) -> None:
        self.answered.set()

    def eof_received(self) -> bool:
        return False  # close as well

    def pause_writing(self) -> None:
        self.takes.clear()

    def resume_writing(self) -> None:
        self.takes.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self.answered.set()
        self.takes.set()


NICENESS = 10  # of the abusers' thread, above that of the process


class Crowd:
    """Abusers of one manner against one server, from :meth:`__enter__` to :meth:`__exit__`.

    :param clients: connections at the same time.
    :param tls: they speak TLS. Where that is a ``ClientHello`` of :class:`Manner`, they do not.
    :param per_second: open and close so many connections a second instead, and say nothing.
    """

    def __init__(
        self,
        address: str,
        port: int,
        manner: Manner,
        *,
        clients: int,
        tls: bool = False,
        per_second: float | None = None,
    ) -> None:
        self.tally = Tally()
        self._where = (address, port)
        self._manner = manner
        self._clients = clients
        self._tls = tls and not manner.greets
        self._hello = client_hello("localhost") if manner.greets else b""
        self._per_second = per_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="abusers", daemon=True)

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        # Abusers stand for other machines: others here have a processor before them. They have some
        # of it all the same: abuse that never came proves nothing. A sandbox may refuse that.
        with contextlib.suppress(OSError):
            thread = threading.get_native_id()
            own = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, own + NICENESS)
        if self._per_second is not None:
            self._flood(self._per_second)
        else:
            asyncio.run(self._crowd())

    async def _crowd(self) -> None:
        gate = asyncio.Semaphore(_OPENING_MAX)
        slots = [asyncio.create_task(self._slot(gate)) for _ in range(self._clients)]
        while not self._stopping.is_set():
            await asyncio.sleep(_AGAIN_S / 2)
        for slot in slots:
            slot.cancel()
        await asyncio.gather(*slots, return_exceptions=True)

    async def _slot(self, gate: asyncio.Semaphore) -> None:
        """One abuser: a connection after another."""
        while True:
            async with gate:
                client = await self._opened()
            if client is None:
                self.tally.refused += 1
                await asyncio.sleep(_AGAIN_S)
                continue
            self.tally.open()
            try:
                await self._play(client)
            finally:
                self.tally.held -= 1
                client.transport.abort()
            await asyncio.sleep(0)

    async def _opened(self) -> _Client | None:
        loop = asyncio.get_running_loop()
        wire = self._socket()
        try:
            if not self._manner.reads:
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LITTLE_ROOM_BYTES)
            async with asyncio.timeout(_CONNECT_S):
                await loop.sock_connect(wire, self._where)
                _, client = await loop.create_connection(
                    _Client,
                    sock=wire,
                    ssl=_context() if self._tls else None,
                    server_hostname="localhost" if self._tls else None,
                )
        except (OSError, TimeoutError):
            wire.close()
            return None
        except BaseException:
            wire.close()
            raise
        if not self._manner.reads:
            client.transport.pause_reading()
        return client

    async def _play(self, client: _Client) -> None:
        manner = self._manner
        self._send(client, manner.opening or self._hello)
        if manner.awaits_answer or manner.greets:
            await client.answered.wait()
        if manner.greets:
            return
        self._send(client, manner.beginning)
        if not manner.repeated:
            await client.closed.wait()
        while not client.closed.is_set():
            await client.takes.wait()
            self._send(client, manner.repeated)
            if manner.every_s:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(client.closed.wait(), manner.every_s)
            else:
                await asyncio.sleep(0)  # the others have their turn

    def _send(self, client: _Client, octets: bytes) -> None:
        if octets and not client.transport.is_closing():
            client.transport.write(octets)
            self.tally.sent_bytes += len(octets)

    def _flood(self, per_second: float) -> None:
        """Open so many connections a second as the machine can, and close the oldest."""
        held: collections.deque[socket.socket] = collections.deque()
        tries_max = max(1, int(2 * per_second * _FLOOD_TICK_S))
        begin, tries = time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - begin) * per_second) - tries
            for _ in range(min(due, tries_max)):
                tries += 1
                self._begin_connect(held)
                if len(held) > _FLOOD_HELD:
                    self._end_connect(held.popleft())
            if due > tries_max:  # what the machine cannot do is not made up for
                begin, tries = time.monotonic(), 0
            time.sleep(_FLOOD_TICK_S if due < tries_max else 0)
        while held:
            self._end_connect(held.popleft())

    def _begin_connect(self, held: collections.deque[socket.socket]) -> None:
        wire = self._socket()
        try:
            wire.connect(self._where)
        except BlockingIOError:
            pass  # on its way
        except OSError:
            wire.close()
            self.tally.refused += 1
            return
        held.append(wire)
        self.tally.held = len(held)
        self.tally.held_max = max(self.tally.held_max, len(held))

    def _end_connect(self, wire: socket.socket) -> None:
        """Close one, and see whether it was taken in the meantime."""
        with wire:
            try:
                wire.getpeername()
                self.tally.opened += 1
            except OSError:
                self.tally.refused += 1

    def _socket(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._where[0] else socket.AF_INET
        wire = socket.socket(family, socket.SOCK_STREAM)
        wire.setblocking(False)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        return wire
