"""Abuse beside honest clients: what these get, quiet and meanwhile, and what the server holds.

The honest are two kinds. ``httpmark-load`` asks at a fixed low rate on connections that stand
before the abuse begins, timed from when each request was due. Newcomers come one after another,
each with one request on a connection of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from httpmark.harness.http import response_reader
from httpmark.harness.http.address import endpoint, url
from httpmark.harness.load.abuse_scenarios import BY_NAME, Needs, Scenario
from httpmark.harness.load.engines import launch
from httpmark.harness.model.abuse import Done, Fate, Held, Honest, Suffered
from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers import (
    abusive_clients,
    binaries,
    memory_use,
    open_connections,
    requested_path,
    sockets,
)
from httpmark.harness.servers.abusive_clients import Crowd

RATIO_HELD_MAX = 10.0  # the aim: p99 under abuse is less than ten times the quiet one
LOST_RATIO_MAX = 0.01  # of what the honest asked; above it they starved
_DESCRIPTORS_LEFT = 1_000  # how many more a server may open where its descriptors are filled
_SETTLE_S = 0.5  # the honest are there so long before the abuse begins
_NEWCOMER_S = 2.0
_NEWCOMER_EVERY_S = 0.1
_FIRST_ANSWER_S = 3.0
_DRAIN_S = 2.0
_GRACE_S = 15.0
_LOOK_S = 0.25
_AGAIN_S_MAX = 10.0
_AGAIN_PAUSE_S = 0.05


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How it is done, the same for every server."""

    clients: int = 10
    rate: float = 200.0
    seconds: float = 8.0
    lead_s: float = 1.0  # the abuse stands so long before the window begins


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """A server that answers, and how to watch it."""

    address: str
    port: int
    path: str
    tls: bool  # ``port`` speaks TLS
    tls_port: int | None  # another one does
    pids: Callable[[], list[int]]
    death: Callable[[], str | None]  # how it ended; None while it lives
    is_ours: bool  # we started it, so we may limit it


class Place(msgspec.Struct, frozen=True):
    """One port of a server, and whether it speaks TLS."""

    address: str
    port: int
    tls: bool
    path: str

    def get(self) -> bytes:
        host = endpoint(self.address, self.port)
        return f"GET {self.path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1")

    def answers(self, *, deadline_s: float) -> bool:
        """Whether a fresh connection gets a 2xx."""
        try:
            answer = sockets.ask(
                self.address, self.port, self.get(), deadline_s=deadline_s, tls=self.tls
            )
        except OSError:
            return False
        return requested_path.accepts(response_reader.final_status(answer))


_NOBODY_CAME = (
    "no abuser came, as this machine had no time for them: "
    "abuse it again while the machine does nothing else"
)


class Besieged:
    """One server that goes through scenarios; it keeps what the quiet was like."""

    def __init__(self, ground: Ground, asked: Asked) -> None:
        self._ground = ground
        self._asked = asked
        self._quiet: dict[bool, Honest] = {}

    def place(self, scenario: Scenario) -> Place | None:
        """Where a scenario goes; None where the server has no such port."""
        ground = self._ground
        if scenario.needs is Needs.TLS and not ground.tls:
            if ground.tls_port is None:
                return None
            return Place(ground.address, ground.tls_port, True, ground.path)
        return Place(ground.address, ground.port, ground.tls, ground.path)

    def quiet(self, place: Place) -> Honest:
        """What the honest get without abuse; measured once for each port.

        :raises Unusable: they are not served, so there is nothing to compare with.
        """
        if place.tls not in self._quiet:
            honest, _ = self._honest(place, look=lambda: None, abuse=None)
            if honest.p99_us is None or honest.lost > LOST_RATIO_MAX * honest.due:
                why = honest.reason or f"{honest.lost} of {honest.due + honest.new_asked} got none"
                raise Unusable(
                    f"good requests are not answered without abuse: {why}: name a path with --path"
                )
            self._quiet[place.tls] = honest
        return self._quiet[place.tls]

    def suffer(self, scenario: Scenario) -> Suffered:
        """Put the server through one kind of abuse.

        :raises Unusable: good requests are not answered without abuse either.
        """
        place = self.place(scenario)
        if place is None:
            return Suffered(scenario=scenario.name, reason="it speaks no TLS")
        if scenario.needs is Needs.WEBSOCKET and not speaks_websocket(place):
            return Suffered(scenario=scenario.name, reason="GET /websocket is no WebSocket")
        quiet = self.quiet(place)
        watch = _Watch(self._ground)
        limits, most = self.limited(scenario)
        try:
            clients = min(scenario.clients, abusive_clients.room())
            if most is not None:
                clients = min(clients, 2 * _DESCRIPTORS_LEFT)
            host = endpoint(place.address, place.port)
            crowd = Crowd(
                place.address, place.port, scenario.manner(path=place.path, host=host),
                clients=clients, tls=place.tls, per_second=scenario.per_second,
            )  # fmt: skip
            under, done = self._honest(place, look=watch, abuse=crowd)
            again_s = self._again(place)
        finally:
            give_back(limits)
        if done is not None and not done.opened and not done.refused:
            return Suffered(scenario=scenario.name, reason=_NOBODY_CAME, done=done)
        died = self._ground.death()
        fate, ratio = judged(quiet, under, again_s=again_s, died=died)
        return Suffered(
            scenario=scenario.name,
            fate=fate,
            reason=died or under.reason,
            quiet=quiet,
            under=under,
            p99_ratio=ratio,
            done=done,
            held=watch.held(),
            again_s=again_s,
            descriptors=most,
        )

    def limited(self, scenario: Scenario) -> tuple[dict[int, int], int | None]:
        """Limit the descriptors of a server that is ours: the limits that its processes had, and
        the one that they have."""
        ground = self._ground
        if not (scenario.fills_descriptors and ground.is_ours):
            return {}, None
        pids = ground.pids()
        most = max((open_connections.descriptors([pid]) or 0 for pid in pids), default=0)
        most += _DESCRIPTORS_LEFT
        before = {pid: abusive_clients.limit_descriptors(pid, most) for pid in pids}
        limits = {pid: limit for pid, limit in before.items() if limit is not None}
        return limits, most if limits else None

    def _honest(
        self, place: Place, *, look: Callable[[], None], abuse: Crowd | None
    ) -> tuple[Honest, Done | None]:
        """One window of the honest, with abusers beside them or without."""
        asked = self._asked
        before_s = _SETTLE_S + (asked.lead_s if abuse is not None else 0.0)
        window = _Window(place, abuse, begins_s=before_s, seconds=asked.seconds)
        command = [
            *(*launch.at_once(), binaries.need("load")),
            *("--connections", str(asked.clients), "--mode", "open", "--rate", f"{asked.rate:g}"),
            *("--duration-s", f"{asked.seconds:g}", "--warmup-s", f"{before_s:g}"),
            *("--first-answer-s", f"{_FIRST_ANSWER_S:g}"),
            *("--drain-s", f"{_DRAIN_S:g}", "--drain-max-s", f"{_DRAIN_S:g}", "--json"),
            url(place.address, place.port, place.path, tls=place.tls),
        ]

        def looked(_: int) -> None:
            window.turn()
            look()

        try:
            code, out, errors, _ = launch.run_engine(
                command,
                timeout_s=_FIRST_ANSWER_S + before_s + asked.seconds + _DRAIN_S + _GRACE_S,
                cpus=None,
                look=looked,
            )
        except Unusable as error:
            code, out, errors = 3, "", str(error)
        finally:
            window.end()
        due = round(asked.rate * asked.seconds)
        return _read(code, out, errors, due=due, newcomers=window.newcomers), window.done()

    def _again(self, place: Place) -> float | None:
        """Seconds until the server answers again; None: it does not."""
        began = time.monotonic()
        while (spent := time.monotonic() - began) < _AGAIN_S_MAX:
            if place.answers(deadline_s=_NEWCOMER_S):
                return spent
            if self._ground.death() is not None:
                return None
            time.sleep(_AGAIN_PAUSE_S)
        return None


class _Newcomers:
    """Clients that come one after another, counted within a window."""

    def __init__(self, place: Place) -> None:
        self.asked = self.answered = 0
        self._place = place
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="newcomers", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(2 * _NEWCOMER_S)

    def _run(self) -> None:
        while not self._ending.wait(_NEWCOMER_EVERY_S):
            is_answered = self._place.answers(deadline_s=_NEWCOMER_S)
            self.asked += 1
            self.answered += is_answered


class _Window:
    """What happens beside ``httpmark-load``: the abuse begins, newcomers come, both end."""

    def __init__(
        self, place: Place, abuse: Crowd | None, *, begins_s: float, seconds: float
    ) -> None:
        self.newcomers = _Newcomers(place)
        self._abuse = abuse
        self._begins_s, self._seconds = begins_s, seconds
        self._started = time.monotonic()
        self._began: float | None = None
        self._took = 0.0
        self._steps = self._script()

    def turn(self) -> None:
        next(self._steps, None)

    def _script(self) -> Generator[None]:
        while self._since() < _SETTLE_S:
            yield
        if self._abuse is not None:
            self._abuse.__enter__()
            self._began = time.monotonic()
        while self._since() < self._begins_s:
            yield
        self.newcomers.begin()
        while self._since() < self._begins_s + self._seconds:
            yield
        self._end_all()

    def _since(self) -> float:
        return time.monotonic() - self._started

    def end(self) -> None:
        self._steps.close()
        self._end_all()

    def _end_all(self) -> None:
        self.newcomers.end()
        if self._abuse is not None and self._began is not None and not self._took:
            self._took = time.monotonic() - self._began
            self._abuse.__exit__()

    def done(self) -> Done | None:
        """What the abusers did."""
        if self._abuse is None:
            return None
        tally = self._abuse.tally
        return Done(
            seconds=self._took,
            opened=tally.opened,
            refused=tally.refused,
            held_max=tally.held_max,
            sent_bytes=tally.sent_bytes,
        )


class _Watch:
    """What a server's processes and the kernel hold, looked at again and again."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._looked = 0.0
        self._pss_before, self._tcp_before = self._now()
        self._pss_peak, self._tcp_peak = self._pss_before, self._tcp_before

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        pss, tcp = self._now()
        if pss is not None:
            self._pss_peak = max(self._pss_peak or 0, pss)
        if tcp is not None:
            self._tcp_peak = max(self._tcp_peak or 0, tcp)

    def _now(self) -> tuple[int | None, int | None]:
        found = memory_use.memory(self._ground.pids())
        if found is None:
            return None, None
        return found.pss_kb, memory_use.socket_buffers_kb()

    def held(self) -> Held:
        return Held(
            pss_before_kb=self._pss_before,
            pss_peak_kb=self._pss_peak,
            tcp_before_kb=self._tcp_before,
            tcp_peak_kb=self._tcp_peak,
        )


def give_back(limits: dict[int, int]) -> None:
    """Give processes the limits of descriptors that they had."""
    for pid, limit in limits.items():
        abusive_clients.limit_descriptors(pid, limit)


def speaks_websocket(place: Place) -> bool:
    """Whether a handshake at ``/websocket`` is answered with 101."""
    host = endpoint(place.address, place.port)
    opening = BY_NAME["websocket-fragments"].manner(path=place.path, host=host).opening
    try:
        answer = sockets.ask(
            place.address, place.port, opening, deadline_s=_NEWCOMER_S / 2, tls=place.tls
        )
    except OSError:
        return False
    return (answer or b"").startswith(b"HTTP/1.1 101 ")


def judged(
    quiet: Honest, under: Honest, *, again_s: float | None, died: str | None
) -> tuple[Fate, float | None]:
    """The fate of a server, and its p99 under abuse over the quiet one."""
    ratio = None
    if quiet.p99_us and under.p99_us is not None:
        ratio = under.p99_us / quiet.p99_us
    if died is not None:
        return Fate.DIED, ratio
    if again_s is None:
        return Fate.SILENT, ratio
    lost_old = under.due - under.answered
    lost_new = under.new_asked - under.new_answered
    if (
        ratio is None
        or lost_old > LOST_RATIO_MAX * under.due
        or lost_new > LOST_RATIO_MAX * under.new_asked
    ):
        return Fate.STARVED, ratio
    return (Fate.SLOWED if ratio >= RATIO_HELD_MAX else Fate.HELD), ratio


def _read(code: int, out: str, errors: str, *, due: int, newcomers: _Newcomers) -> Honest:
    """What ``httpmark-load --json`` printed, as what the honest got."""
    told: dict[str, Any] = {}
    if code in (0, 1):
        try:
            told = msgspec.json.decode(out)
        except msgspec.DecodeError:
            errors = errors or "httpmark-load printed no result"
    if not told:
        last = next(reversed(errors.strip().splitlines()), f"exit code {code}")
        return Honest(
            due=due,
            answered=0,
            reason=last.removeprefix("httpmark-load: "),
            new_asked=newcomers.asked,
            new_answered=newcomers.answered,
        )
    due = told.get("due") or due
    answered = min(due, told["requests"])
    latency = told["latency_us"] or {}
    # What was not answered well is later than all that was.
    is_known = due - answered <= LOST_RATIO_MAX * due
    return Honest(
        due=due,
        answered=answered,
        errors={name: count for name, count in told["errors"].items() if count},
        p50_us=latency.get("p50"),
        p99_us=latency.get("p99") if is_known else None,
        lag_p99_us=(told.get("lag_us") or {}).get("p99"),
        reason=next(reversed(told["complaints"]), None),
        new_asked=newcomers.asked,
        new_answered=newcomers.answered,
    )
