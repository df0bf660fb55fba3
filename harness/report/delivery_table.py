"""Deliveries that disagree: the messages whose answer depends on how TCP cut them, by server.

Nothing is compared here: ``judging.delivery_comparison`` did that, and the run holds the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.http import shell_lines
from httpmark.harness.judging.exchange_reader import ExchangeReader
from httpmark.harness.model import timeline
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Deliveries

SHOWN_MAX = 12  # disagreements whose bytes are shown in the page


class Tally(msgspec.Struct, frozen=True):
    """The result of one server's deliveries of one suite."""

    server: str
    suite: str
    found: Deliveries

    @property
    def cuts(self) -> int:
        """How many cuts went out."""
        return sum(self.found.fired.values())


class Side(msgspec.Struct, frozen=True):
    """One server whose answer depends on the cut, with the bytes if they are stored."""

    server: str
    count: int
    deliveries: tuple[str, ...]
    what: str
    sent: bytes = b""
    alone: bytes | None = None
    cut: bytes | None = None
    again: str = ""  # the line that sends it again with the same cut


class Divided(msgspec.Struct, frozen=True):
    """A message to which the answer of at least one server depends on the cut."""

    case: str
    family: Family | None
    level: Level
    sides: tuple[Side, ...]


class Cuts(msgspec.Struct, frozen=True):
    """All tallies and disagreements; ``left_out`` disagreements are listed without bytes."""

    tallies: tuple[Tally, ...]
    divided: tuple[Divided, ...]
    left_out: int


def cuts(run: Run, known: Catalogue, evidence: ExchangeReader | None) -> Cuts | None:
    """What the run knows of deliveries; None if every message was sent in one write."""
    tallies = tuple(
        Tally(server.name, name, suite.deliveries)
        for server in run.servers
        for name, suite in server.compliance.suites.items()
        if suite.deliveries is not None
    )
    if not tallies:
        return None
    asked = {server.name: server.again for server in run.servers}
    sides: dict[str, list[Side]] = {}
    levels: dict[str, Level] = {}
    shown = total = 0
    for tally in tallies:
        for one in tally.found.disagreements:
            total += 1
            again = _command(one.case, tally.suite, asked[tally.server])
            side = Side(tally.server, one.count, one.deliveries, one.what, again=again)
            if evidence is not None and shown < SHOWN_MAX and one.deliveries:
                gone = asked[tally.server][:1] == ("--serve",)  # nothing listens there any more
                side = _with_bytes(side, one.case, evidence, typed=not gone)
                shown += side.cut is not None
            sides.setdefault(one.case, []).append(side)
            levels.setdefault(one.case, one.level)
    return Cuts(
        tallies,
        tuple(
            Divided(case, family_of(case, known.families), levels[case], tuple(found))
            for case, found in sorted(sides.items(), key=lambda item: (-len(item[1]), item[0]))
        ),
        total - shown,
    )


def _command(case: str, suite: str, again: Sequence[str]) -> str:
    """What cuts a message in every way again."""
    return f"{shell_lines.command(case, suite, again, is_played=True)} --full"


def _with_bytes(side: Side, case: str, evidence: ExchangeReader, *, typed: bool) -> Side:
    alone = list(evidence.exchanges(side.server, case=case, delivery=delivery_modes.ONE))
    cut = list(evidence.exchanges(side.server, case=case, delivery=side.deliveries[0]))
    if not alone or not cut:
        return side
    # By hand only where the writes are known: one write would draw the other answer.
    known = timeline.events(cut[-1].timeline)
    by_hand = shell_lines.by_hand(cut[-1], evidence.facts(side.server)) if typed and known else None
    return msgspec.structs.replace(
        side,
        sent=cut[-1].sent,
        alone=alone[-1].received,
        cut=cut[-1].received,
        again=by_hand or side.again,
    )


def family_of(case: str, families: Mapping[str, Family]) -> Family | None:
    """The family of a case: of its own name, or the one that begins it."""
    if case in families:
        return families[case]
    return next((families[id] for id in families if case.startswith(f"{id}-")), None)
