"""What shows a failure: of each finding that fails, one exchange, and how to send it by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from httpmark.harness import explain, judge, octets
from httpmark.harness.evidence import Evidence
from httpmark.harness.gates import Finding
from httpmark.harness.model import Exchange
from httpmark.harness.run import EVIDENCE

_BY_HAND_OCTETS_MAX = 8192  # no shell line is longer
_LOOKED_AT_MAX = 100_000  # exchanges of one family


def of_run(
    found: Sequence[Finding], folder: Path, *, target: str | None = None
) -> tuple[Finding, ...]:
    """The same, from the evidence in a run folder; where there is none, the findings alone."""
    if not (folder / EVIDENCE).is_file() or not any(finding.fails for finding in found):
        return tuple(found)
    with Evidence(folder / EVIDENCE) as evidence:
        return shown(found, evidence, target=target)


def shown(
    found: Iterable[Finding], evidence: Evidence, *, target: str | None = None
) -> tuple[Finding, ...]:
    """The findings, the failing ones of families with both sides of one telling exchange.

    :param target: what ``httpmark replay`` should be told; None where nothing listens any more.
    """
    return tuple(_shown(finding, evidence, target) for finding in found)


def _shown(finding: Finding, evidence: Evidence, target: str | None) -> Finding:
    if not finding.fails or finding.reproducers:
        return finding
    exchange = next(_witnesses(finding, evidence), None)
    if exchange is None:
        return finding
    replay = (f"httpmark replay {exchange.case} {target}",) if target else ()
    by_hand = (
        (octets.reproducer(exchange.sent),) if len(exchange.sent) <= _BY_HAND_OCTETS_MAX else ()
    )
    return msgspec.structs.replace(
        finding,
        reproducers=(*replay, *by_hand),
        wire=wire(exchange),
    )


def _witnesses(finding: Finding, evidence: Evidence) -> Iterator[Exchange]:
    if finding.witness:
        family = finding.family or None
        yield from evidence.exchanges(finding.server, family=family, case=finding.witness)
        return
    if not finding.family:
        return
    of_family = evidence.exchanges(finding.server, family=finding.family)
    for exchange, _ in zip(of_family, range(_LOOKED_AT_MAX), strict=False):
        detected, word = judge.seed_reading(exchange)
        if (finding.outcome == "accepted" and not detected) or {
            "hung": "mute", "malformed": "malformed"
        }.get(finding.outcome) == word:  # fmt: skip
            yield exchange


def wire(exchange: Exchange) -> str:
    """Both sides of the wire, escaped, a line of the message on each line."""
    return "\n".join(
        (
            f"{exchange.case}, sent:",
            explain.lines(exchange.sent),
            f"received ({exchange.outcome}, connection {exchange.end}, {exchange.end_us} us):",
            explain.lines(exchange.received) or "(nothing)",
        )
    )
