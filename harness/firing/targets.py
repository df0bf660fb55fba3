"""What cases are sent to, and how to tell that it still answers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import msgspec

from httpmark.harness.firing.probe import IN_FLIGHT, Probe
from httpmark.harness.http import response_reader
from httpmark.harness.http.address import listening_at
from httpmark.harness.model.cases import Case, Facts, Op, OwnAnswers, Step
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.servers import open_connections, proc_files, sockets
from httpmark.harness.servers.restartable import Restartable

FEW_IN_FLIGHT = 6  # the shortest listen queue is five, and takes one more
_RECENT_MAX = 64
QUESTION = "question"
"""What a request is called that is no case: it was asked to find out what a target can do."""


class LastAsked:
    """What a target was asked last, and what it is not asked again because it dies of it."""

    def __init__(self) -> None:
        self.recent: deque[Case] = deque(maxlen=_RECENT_MAX)
        self.deadly: set[bytes] = set()

    def note(self, octets: bytes) -> None:
        """Remember a question; one that is asked again and again, like the plain request, once."""
        if any(case.id == QUESTION and case.sent == octets for case in self.recent):
            return
        steps = (Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=_QUESTION_MS))
        self.recent.append(Case(QUESTION, QUESTION, steps, deadline_ms=2 * _QUESTION_MS))

    def remembered(self, cases: Iterable[Case]) -> Iterator[Case]:
        """The same cases; each is remembered when it goes out."""
        for case in cases:
            self.recent.append(case)
            yield case


_QUESTION_MS = 1000


class Patience:
    """How long questions are waited for that find out what a target can do.

    Each that runs out of time shows that the target does not have what it was asked for. One that
    lets many of them run out would hold a command for minutes and show no more.
    """

    def __init__(self) -> None:
        self._lost = 0.0

    def allows_s(self, wanted_s: float, slowest_ms: int) -> float:
        """How long the next question is waited for; 0: it is not asked any more."""
        if self._lost < _LOST_IN_FULL:
            return wanted_s
        short_s = max(_SHORT_S, _SHORT_SLOWER * slowest_ms / 1000)
        return min(wanted_s, short_s) if self._lost < _LOST_MAX else 0.0

    def lose(self, waited_s: float) -> None:
        """Note a question that ran out of time; a short one weighs less."""
        self._lost += min(1.0, waited_s / _SHORT_S)


_LOST_IN_FULL = 4  # the first questions that run out have all the time that they want
_LOST_MAX = 16
_SHORT_S = 0.8  # /slow takes 0.5 s
_SHORT_SLOWER = 4


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server that cases are sent to, and how to tell that it still lives."""

    name: str
    address: str
    port: int
    host: str  # the Host value
    path: str = "/hello"
    post_path: str | None = ""  # as in model.cases.Facts
    own: OwnAnswers = OwnAnswers()
    capabilities: tuple[str, ...] = ("hello",)
    death: Callable[[], str | None] = lambda: None  # why it ended; None while it runs

    unix: str | None = None  # the path of a Unix socket, instead of address and port
    jobs: int | None = None  # at most so many connections at once
    tls: bool = False
    ca_file: str | None = None  # verifies the certificate
    tls_name: str | None = None  # the name in the certificate, if it is not the address
    limits: dict[str, int | None] = {}
    timeouts: dict[str, float | None] = {}
    timeouts_found: tuple[str, ...] = ()  # those of timeouts that were found by asking
    answers_1_0_as_1_0: bool = False
    values: dict[str, str] = {}  # names of the files that it was given, and the like
    header: tuple[str, ...] = ()  # field lines that go after every Host line
    slowest_ms: int = 0  # the longest of a few plain requests, one after the other
    at_once: int | None = None  # how many plain requests it answers at once; None: not asked
    server: Restartable | None = None  # its process, where it was started here
    last_asked: LastAsked = msgspec.field(default_factory=LastAsked)
    patience: Patience = msgspec.field(default_factory=Patience)

    def facts(self) -> Facts:
        """What scenario texts and verdicts need to know about it."""
        return Facts(
            host=self.host,
            port=self.port,
            address=self.address,
            unix=self.unix,
            path=self.path,
            post_path=self.post_path,
            own=self.own,
            capabilities=self.capabilities,
            scheme="https" if self.tls else "http",
            limits=self.limits,
            timeouts=self.timeouts,
            timeouts_found=self.timeouts_found,
            answers_1_0_as_1_0=self.answers_1_0_as_1_0,
            values=self.values,
            header=self.header,
            slowest_ms=self.slowest_ms,
            at_once=self.at_once,
        )

    def ask(self, octets: bytes, *, deadline_s: float) -> bytes | None:
        """What comes back for one request (``sockets.ask``); nothing for one that it dies of.

        Only the plain request is asked as often and waited for as long as the caller wants
        (:class:`Patience`).
        """
        if octets in self.last_asked.deadly:
            return b""
        is_plain = octets == _plain(self)
        if not is_plain:
            deadline_s = self.patience.allows_s(deadline_s, self.slowest_ms)
        if deadline_s <= 0:
            return b""
        self.last_asked.note(octets)
        began = time.monotonic()
        answer = sockets.ask(
            self.address, self.port, octets, deadline_s=deadline_s,
            unix=self.unix, tls=self.tls, ca_file=self.ca_file, tls_name=self.tls_name,
        )  # fmt: skip
        if not is_plain and time.monotonic() - began >= deadline_s:
            self.patience.lose(deadline_s)
        return answer

    def probe(self, *, in_flight: int = IN_FLIGHT, connections_max: int | None = None) -> Probe:
        """A probe that plays cases against it."""
        return Probe(
            self.address, self.port,
            in_flight=min(in_flight, self.jobs or in_flight, self.at_once or in_flight),
            connections_max=connections_max,
            unix=self.unix, tls=self.tls, ca_file=self.ca_file, tls_name=self.tls_name,
        )  # fmt: skip

    def flood(
        self, octets: bytes, total: int, stall_s: float, look: Callable[[], None]
    ) -> tuple[int, str]:
        """What it takes from a client that reads nothing (``sockets.flood``)."""
        return sockets.flood(
            self.address, self.port, octets, total=total, stall_s=stall_s, look=look,
            unix=self.unix,
        )  # fmt: skip

    def trickle(self, octets: bytes, clients: int, seconds: float, look: Callable[[], None]) -> int:
        """How many clients that read a byte a second it keeps (``sockets.trickle``)."""
        return sockets.trickle(
            self.address, self.port, octets, clients=clients, seconds=seconds, look=look,
            unix=self.unix,
        )  # fmt: skip

    def read_late(
        self,
        octets: bytes,
        is_whole: Callable[[bytearray], bool],
        quiet_s: float,
        patience_s: float,
        opening: bytes,
    ) -> sockets.ReadLate:
        """What a client gets that reads late (``sockets.read_late``)."""
        return sockets.read_late(
            self.address, self.port, octets, is_whole=is_whole, quiet_s=quiet_s,
            patience_s=patience_s, opening=opening, unix=self.unix,
        )  # fmt: skip

    def pids(self) -> list[int]:
        """Its processes, if it runs on this machine and we may see them."""
        if self.unix:
            return proc_files.tree(open_connections.unix_listeners(self.unix))
        if not sockets.is_here(self.address):
            return []  # what listens on that port here is another server
        return proc_files.tree(open_connections.listeners(self.port, self.address))

    @property
    def place(self) -> str:
        """Where it listens, for messages."""
        return listening_at(self.address, self.port, self.unix)


def hello(target: Target, *, deadline_s: float = 2.0) -> bytes | None:
    """The answer to one plain request; None if no connection could be made."""
    return target.ask(_plain(target), deadline_s=deadline_s)


def _plain(target: Target) -> bytes:
    lines = target.facts().host_lines
    return f"GET {target.path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode("latin-1")


def accepts(target: Target, *, deadline_s: float = 2.0) -> bool:
    """Whether one plain request gets a 2xx; a server that is silent or refuses counts as dead."""
    return response_reader.final_status(hello(target, deadline_s=deadline_s)) // 100 == 2


def asked_at_once(target: Target, size: int, wait_ms: int, *, settle_ms: int = 0) -> list[Exchange]:
    """What comes of so many plain requests at once, each on a connection that may be kept.

    :param settle_ms: how long it is seen whether one is, after its answer.
    """
    request = f"GET {target.path} HTTP/1.1\r\n{target.facts().host_lines}\r\n".encode("latin-1")
    steps = (Step(Op.SEND, request), Step(Op.AWAIT, wait_ms=wait_ms))
    cases = (
        Case(f"crowd-{n}", "crowd", steps, deadline_ms=wait_ms + settle_ms, settle_ms=settle_ms)
        for n in range(size)
    )
    with target.probe(in_flight=size) as probe:
        return [exchange for batch in probe.fire(cases) for exchange in batch]
