"""A second opinion on every answer of a run: where our strict reader and h11 differ.

h11 cannot be the judge's reader (it accepts bare LF, obs-fold, a missing SP after the status code),
but where it refuses what we accept, or reads another status, one of the two is worth a look.
"""

from __future__ import annotations

import msgspec

from httpmark.harness.http import response_reader
from httpmark.harness.judging.evidence import Evidence


class Disagreement(msgspec.Struct, frozen=True):
    """Answers of one server that the two readers read differently; the first stands for all."""

    server: str
    ours: str  # a status, or why there is none
    h11: str
    exchanges: int
    received: bytes  # the first of them


def disagreements(evidence: Evidence) -> list[Disagreement]:
    """Every way in which the two differ, the most frequent first."""
    found: dict[tuple[str, str, str], tuple[int, bytes]] = {}
    for server, received, ended, exchanges in evidence.answers():
        ours, other = _ours(received, ended=ended), _theirs(received, ended=ended)
        if ours == other or _neither(ours, other):
            continue
        # The reason names a place in the answer. Without the place, equal reasons are one line.
        key = (server, ours.partition(" at ")[0], other)
        known = found.get(key)
        found[key] = (exchanges + (known[0] if known else 0), known[1] if known else received)
    return sorted(
        (Disagreement(*key, count, received) for key, (count, received) in found.items()),
        key=lambda one: (-one.exchanges, one.server, one.ours),
    )


def _neither(ours: str, other: str) -> bool:
    return not ours.isdigit() and not other.isdigit()


def _ours(received: bytes, *, ended: bool) -> str:
    at = 0
    try:
        while True:
            response = response_reader.read(received, at, ended=ended, head_only=True)
            if not response.interim:
                return str(response.status)
            at = response.end
    except response_reader.Malformed as error:
        return f"{error.why} at {error.at}"
    except response_reader.Incomplete:
        return "not whole"


def _theirs(received: bytes, *, ended: bool) -> str:
    status = response_reader.second_opinion(received, ended=ended)
    return "no response" if status is None else str(status)
