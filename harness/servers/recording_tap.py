"""A tap between a proxy and its origin: it relays every byte, and keeps all of them.

The origin behind it is a server as any other. What came from the proxy on one connection, and what
the origin answered to it, are kept together, with times.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time

from httpmark.harness.model.forwarding import Upstream
from httpmark.harness.servers import sockets

_RECEIVE_BYTES = 1 << 16
_HELD_BYTES_MAX = 1 << 22  # a side that takes nothing is not read for
_LOOK_S = 0.0005
_STOP_S = 5.0


class _Relay:
    """One connection of the proxy, and the one to the origin that stands for it."""

    def __init__(
        self, number: int, proxy: sockets.Socket, origin: sockets.Socket, opened_us: int
    ) -> None:
        self.number = number
        self.opened_us = opened_us
        self.proxy, self.origin = proxy, origin
        self.to_origin, self.from_origin = bytearray(), bytearray()
        self.writes: list[tuple[int, int]] = []
        self.held = {proxy: bytearray(), origin: bytearray()}  # what each of them is still sent
        self.ended = {proxy: False, origin: False}  # nothing more comes from it
        self.told = {proxy: False, origin: False}  # it knows that nothing more comes
        self.ended_by_proxy = False
        self.is_done = False

    def other(self, one: sockets.Socket) -> sockets.Socket:
        return self.origin if one is self.proxy else self.proxy

    def kept(self) -> Upstream:
        return Upstream(
            number=self.number, opened_us=self.opened_us, to_origin=bytes(self.to_origin),
            from_origin=bytes(self.from_origin), writes=tuple(self.writes),
            ended_by_proxy=self.ended_by_proxy,
        )  # fmt: skip


class Tap:
    """Listens for a proxy on ``port`` and relays to an origin, until the ``with`` block ends.

    :raises OSError: nobody can listen on that port.
    """

    def __init__(self, address: str, port: int, origin: tuple[str, int]) -> None:
        self.address, self.port = address, port
        self._origin = origin
        self._listener = sockets.listener(address, port)
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._relays: list[_Relay] = []
        self._opened = 0
        self._changed = self._began
        self._wake_read, self._wake = os.pipe()
        self._orders: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name="recording-tap", daemon=True)

    def __enter__(self) -> Tap:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._order("stop")
        self._thread.join(_STOP_S)

    # --- what the caller asks ---------------------------------------------------------------------

    def now(self) -> tuple[Upstream, ...]:
        """What went by since the last :meth:`cut`, connection by connection."""
        with self._lock:
            return tuple(relay.kept() for relay in self._relays)

    def quiet_for(self) -> float:
        """Seconds since anything went by."""
        with self._lock:
            return time.monotonic() - self._changed

    def cut(self, *, deadline_s: float) -> tuple[Upstream, ...]:
        """End all connections, and give what went by on them. What comes next is on new ones.

        :param deadline_s: the proxy has so long to see that its connections ended.
        """
        self._order("end")
        end = time.monotonic() + deadline_s
        while time.monotonic() < end and not self._all_done():
            time.sleep(_LOOK_S)
        self._order("forget")
        while self._thread.is_alive() and self._orders:
            time.sleep(_LOOK_S)
        with self._lock:
            kept = tuple(relay.kept() for relay in self._relays)
            self._relays.clear()
        return kept

    def _all_done(self) -> bool:
        with self._lock:
            return not self._orders and all(relay.is_done for relay in self._relays)

    def _order(self, word: str) -> None:
        self._orders.append(word)
        with contextlib.suppress(OSError):
            os.write(self._wake, b"!")

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        try:
            while self._turn():
                pass
        finally:
            for relay in self._relays:
                self._close(relay)
            self._selector.close()
            self._listener.close()
            os.close(self._wake_read)
            os.close(self._wake)

    def _turn(self) -> bool:
        """Wait for something and do it; whether to go on."""
        for key, events in self._selector.select():
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj == self._wake_read:
                os.read(self._wake_read, 4096)
                if not self._obey():
                    return False
            else:
                with self._lock:
                    self._move(key.data, key.fileobj, events)  # type: ignore[arg-type]
        return True

    def _obey(self) -> bool:
        while self._orders:
            if self._orders[0] == "stop":
                return False
            with self._lock:
                for relay in self._relays:
                    if self._orders[0] == "forget":
                        self._close(relay)
                    elif not relay.is_done:
                        self._end(relay)
            self._orders.pop(0)
        return True

    def _accept(self) -> None:
        try:
            proxy, _ = self._listener.accept()
        except OSError:
            return
        sockets.at_once(proxy)
        try:
            origin = sockets.connected(*self._origin)
        except OSError:
            proxy.close()
            return
        with self._lock:
            self._opened += 1
            relay = _Relay(self._opened, proxy, origin, self._us())
            self._relays.append(relay)
            self._changed = time.monotonic()
        for one in (proxy, origin):
            self._selector.register(one, selectors.EVENT_READ, relay)

    def _move(self, relay: _Relay, one: sockets.Socket, events: int) -> None:
        if relay.is_done:
            return
        try:
            if events & selectors.EVENT_READ:
                self._read(relay, one)
            for side in (relay.proxy, relay.origin):
                self._write(relay, side)
        except BlockingIOError:
            pass
        except OSError:  # a reset: what it is worth is in the bytes
            relay.ended_by_proxy |= one is relay.proxy
            self._close(relay)
            return
        if all(relay.told.values()):
            self._close(relay)
            return
        for side in (relay.proxy, relay.origin):
            self._select(relay, side)

    def _read(self, relay: _Relay, one: sockets.Socket) -> None:
        piece = one.recv(_RECEIVE_BYTES)
        self._changed = time.monotonic()
        if not piece:
            relay.ended[one] = True
            relay.ended_by_proxy |= one is relay.proxy
            return
        if one is relay.proxy:
            relay.to_origin += piece
            relay.writes.append((self._us(), len(piece)))
        else:
            relay.from_origin += piece
        relay.held[relay.other(one)] += piece

    @staticmethod
    def _write(relay: _Relay, side: sockets.Socket) -> None:
        held = relay.held[side]
        if held:
            with contextlib.suppress(BlockingIOError):
                del held[: side.send(held)]
        if not held and relay.ended[relay.other(side)] and not relay.told[side]:
            sockets.end_of_writing(side)
            relay.told[side] = True

    def _select(self, relay: _Relay, side: sockets.Socket) -> None:
        is_full = len(relay.held[relay.other(side)]) > _HELD_BYTES_MAX
        wanted = 0 if relay.ended[side] or is_full else selectors.EVENT_READ
        wanted |= selectors.EVENT_WRITE if relay.held[side] else 0
        is_known = side in self._selector.get_map()
        if wanted and is_known:
            self._selector.modify(side, wanted, relay)
        elif wanted:
            self._selector.register(side, wanted, relay)
        elif is_known:
            self._selector.unregister(side)

    def _end(self, relay: _Relay) -> None:
        """Tell both sides that nothing more comes; what the proxy still sends is kept."""
        for side in (relay.proxy, relay.origin):
            relay.held[side].clear()
            if not relay.told[side]:
                sockets.end_of_writing(side)
                relay.told[side] = True
        if relay.ended[relay.proxy]:
            self._close(relay)

    def _close(self, relay: _Relay) -> None:
        if relay.is_done:
            return
        relay.is_done = True
        for side in (relay.proxy, relay.origin):
            if side in self._selector.get_map():
                self._selector.unregister(side)
            side.close()

    def _us(self) -> int:
        return round((time.monotonic() - self._began) * 1e6)
