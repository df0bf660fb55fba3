"""Clients that read nothing, or a byte a second."""

from __future__ import annotations

import time
from typing import NamedTuple

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.firing.programs import held_resources
from httpmark.harness.firing.programs.stage import Found, Stage
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers import open_connections

_FLOOD_BYTES = 64 << 20
# A server is stalled if it takes no byte for as long as this many plain answers need.
_STALL_ANSWERS = 100
_STALL_S_MIN = 0.5
_STALL_S_MAX = 2.0
_GROWTH_KB = 32 << 10  # half of what a client sends; docs/method.md says what servers need
_CLIENTS_MAX = 3


class _Flooded(NamedTuple):
    """What became of one client: how it ended, and by how much the server's memory grew."""

    sent: int
    how: str
    growth_kb: int | None

    @property
    def told(self) -> str:
        said = f"{self.how} after {self.sent / (1 << 20):.1f} MiB"
        if self.growth_kb is None:
            return said
        return f"{said}, memory grew by {max(self.growth_kb, 0) / 1024:.1f} MiB"


def never_reading_client(stage: Stage) -> Found:
    """64 MiB of requests, and nobody reads the answers: the server stops reading in time.

    The memory of a server that has just started grows with the first work it gets, so the first
    client does not count. A second one comes while the first is still there, and a third where
    the second seems to cost too much: what is kept of each client shows with each.
    """
    clients = _beside(stage, _stall_s(stage), place=0)
    counted = clients[1:] or clients
    best = min(counted, key=lambda one: one.growth_kb or 0)
    if not stage.alive():
        return Found(Word.FAIL, f"{best.told}; the server does not answer any more")
    is_kept = best.growth_kb is not None and best.growth_kb > _GROWTH_KB
    if best.how == "sent" and (is_kept or best.growth_kb is None):
        why = "the server took all of it, although no answer was read"
        return Found(Word.FAIL, f"{best.told}: {why}")
    if best.growth_kb is None:
        return Found(Word.NOT_APPLICABLE, f"{best.told}; the server's memory is not known")
    if is_kept:
        return Found(Word.FAIL, best.told)
    return Found(Word.PASS if best.how == "stalled" else Word.WARN, best.told)


def _beside(stage: Stage, stall_s: float, *, place: int) -> list[_Flooded]:
    """One client, and those that come while it is still there.

    :param place: how many clients there are already.
    """
    pids = stage.pids()
    before = held_resources.memory_kb(pids)
    growth: int | None = None
    later: list[_Flooded] = []

    def look() -> None:
        nonlocal growth
        after = held_resources.memory_kb(pids)
        if before is None or after is None:
            return
        growth = after - before
        if (place == 0 or growth > _GROWTH_KB) and place + 1 < _CLIENTS_MAX:
            later.extend(_beside(stage, stall_s, place=place + 1))

    sent, how = stage.flood(delivery_modes.message(stage.case), _FLOOD_BYTES, stall_s, look)
    return [_Flooded(sent, how, growth), *later]


def _stall_s(stage: Stage) -> float:
    """A deadline that fits the target: a hundred times the time of a plain answer."""
    started = time.monotonic()
    stage.alive()
    took = time.monotonic() - started
    return min(max(_STALL_ANSWERS * took, _STALL_S_MIN), _STALL_S_MAX)


_READERS = 64
_READING_S = 4.0
_LINGER_S = 3.0  # a server may keep a closed connection so long (RFC 9112 9.6)


def slow_readers(stage: Stage) -> Found:
    """64 clients that read a byte a second: memory grows by 64 MiB at most."""
    if stage.facts.scheme == "https":
        return Found(Word.NOT_APPLICABLE, "played without TLS only")
    write_s = stage.facts.timeouts.get("write_s") or 0
    seconds = max(1.2 * write_s, write_s + 2) + _LINGER_S if write_s else _READING_S
    pids = stage.pids()
    before, memory = open_connections.descriptors(pids), held_resources.memory_kb(pids)
    seen: list[tuple[int | None, int | None]] = []
    stage.trickle(
        delivery_modes.message(stage.case), _READERS, seconds,
        lambda: seen.append((open_connections.descriptors(pids), held_resources.memory_kb(pids))),
    )  # fmt: skip
    if not stage.alive():
        return Found(Word.FAIL, "the server does not answer any more")
    held, after = seen[0] if seen else (None, None)
    told = f"{_READERS} readers for {seconds:.0f} s"
    if before is not None and held is not None:
        told += f", {held - before} connections held"
    found = held_resources.growth_within_bound(told, memory, after)
    if write_s and before is not None and held is not None and held > before:
        # A byte a second is some progress, which not every write timeout is meant to end.
        word = Word.WARN if found.word is Word.PASS else found.word
        return Found(word, f"{found.actual}; its write timeout is {write_s:g} s")
    return found
