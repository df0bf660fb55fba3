"""An example for each finding that fails: one exchange, and the commands that send it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate.findings import Finding
from httpmark.harness.http import printable, shell_lines
from httpmark.harness.judging import evidence as judging_evidence
from httpmark.harness.judging import published_rule
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.run import Run
from httpmark.harness.model.run_folder import EVIDENCE

_SENT_CHARACTERS_MAX = 300  # of a request that is shown in a terminal
_LOOKED_AT_MAX = 100_000  # exchanges of one family


def of_run(found: Sequence[Finding], folder: Path, result: Run) -> tuple[Finding, ...]:
    """The same, from the evidence in a run folder; where there is none, the findings alone."""
    if not (folder / EVIDENCE).is_file() or not any(finding.fails for finding in found):
        return tuple(found)
    with Evidence(folder / EVIDENCE, masked=True) as evidence:
        return shown(found, evidence, {server.name: server.again for server in result.servers})


def shown(
    found: Iterable[Finding], evidence: Evidence, again: Mapping[str, tuple[str, ...]]
) -> tuple[Finding, ...]:
    """The findings, the failing ones with both sides of one telling exchange.

    :param again: ``ServerResult.again`` by server.
    """
    return tuple(_shown(one, evidence, again.get(one.server, ())) for one in found)


def _shown(finding: Finding, evidence: Evidence, again: tuple[str, ...]) -> Finding:
    if not finding.fails or finding.reproducers:
        return finding
    exchange = next(_witnesses(finding, evidence), None)
    case = exchange.case if exchange is not None else finding.witness
    if not case:
        return finding
    entry = loading.load().families.get(case)
    is_played = entry is not None and entry.runner is not None
    command = shell_lines.command(
        case, finding.suite, again, is_played=is_played, delivery=finding.delivery
    )
    if exchange is None:
        return msgspec.structs.replace(finding, reproducers=(command,) if again else ())
    gone = again[:1] == ("--serve",)  # nothing listens there any more
    by_hand = None if gone else shell_lines.by_hand(exchange, evidence.facts(finding.server))
    lines = [command] if again or by_hand is None else []
    lines += [by_hand] if by_hand is not None else []
    shown = [wire(exchange)]
    fewest = ""
    if (small := _smaller(finding, exchange, evidence)) is not None:
        told = shell_lines.fewer(exchange, small)
        shown.append(f"{told}:\n{wire(small)}")
        facts = evidence.facts(finding.server)
        line = None if gone else shell_lines.by_hand(small, facts, with_canary=False)
        lines += [f"# {told}:", line] if line is not None else []
        fewest = f"{told}:\n{line or printable.escaped(shell_lines.own(small))}"
    sent = printable.escaped(shell_lines.own(exchange))
    return msgspec.structs.replace(
        finding,
        reproducers=(*lines, *finding.by_hand),
        wire="\n\n".join(shown),
        fewest=finding.fewest or fewest,
        sent=sent if len(sent) <= _SENT_CHARACTERS_MAX else "",
    )


def _smaller(finding: Finding, exchange: Exchange, evidence: Evidence) -> Exchange | None:
    """The exchange with the fewest bytes that fails alike, where one was stored."""
    kept = evidence.exchanges(
        finding.server, case=exchange.case, delivery=judging_evidence.kept_as(finding.id)
    )
    return next(kept, None)


def _witnesses(finding: Finding, evidence: Evidence) -> Iterator[Exchange]:
    if finding.witness:
        yield from evidence.exchanges(
            finding.server, case=finding.witness, delivery=finding.delivery or "whole"
        )
        return
    if not finding.family:
        return
    of_family = evidence.exchanges(finding.server, family=finding.family)
    facts = evidence.facts(finding.server)
    for exchange, _ in zip(of_family, range(_LOOKED_AT_MAX), strict=False):
        detected, word = published_rule.reading_of(exchange, facts)
        if (finding.outcome == "accepted" and not detected) or {
            "hung": "mute", "malformed": "malformed"
        }.get(finding.outcome) == word:  # fmt: skip
            yield exchange


def wire(exchange: Exchange) -> str:
    """Both sides of the wire, escaped, a line of the message on each line."""
    return "\n".join(
        (
            f"{exchange.case}, sent:",
            printable.escaped_lines(exchange.sent),
            f"received ({exchange.outcome}, connection {exchange.end}, {exchange.end_us} us):",
            printable.escaped_lines(exchange.received) or "(nothing)",
        )
    )
