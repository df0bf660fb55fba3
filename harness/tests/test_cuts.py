"""Deliveries that disagree: told with both answers; what was not asked is no agreement."""

from __future__ import annotations

import msgspec

from httpmark.harness import catalogue, cuts, report
from httpmark.harness.model import Compliance

from .made_run import (
    BAD,
    HOSTILE,
    OCTET_FAMILIES,
    CompleteEvidence,
    complete_run,
    designed,
    rfc_suite,
    with_server,
)

KNOWN = catalogue.load()
NAMES = ("reference", "go_net_http", "rust_hyper")
RUN = complete_run(NAMES, only=OCTET_FAMILIES)
EVIDENCE = CompleteEvidence(only=OCTET_FAMILIES)


def test_a_message_stands_once_with_every_server_that_divides_it() -> None:
    found = cuts.cuts(RUN, KNOWN, EVIDENCE)
    assert found is not None
    assert [(one.server, one.cuts) for one in found.tallies] == [(name, 2235) for name in NAMES]
    [divided] = found.divided
    assert divided.family == designed()[0]
    assert [side.server for side in divided.sides] == ["go_net_http", "rust_hyper"]
    for side in divided.sides:
        assert (side.alone, side.cut) == (BAD, HOSTILE)
    assert found.left_out == 0


def test_without_evidence_it_is_told_all_the_same() -> None:
    found = cuts.cuts(RUN, KNOWN, None)
    assert found is not None
    assert found.left_out == 2
    assert found.divided[0].sides[0].cut is None
    assert "in 3 cuts: two@17, two@18, byte" in report.render(RUN, None)


def test_only_a_few_stand_with_their_octets() -> None:
    suite = rfc_suite("go_net_http")
    assert suite.deliveries is not None
    one = suite.deliveries.disagreements[0]
    many = tuple(msgspec.structs.replace(one, case=f"{one.case}-{at:02}") for at in range(20))
    suite = msgspec.structs.replace(
        suite, deliveries=msgspec.structs.replace(suite.deliveries, disagreements=many)
    )
    run = with_server(RUN, "go_net_http", compliance=Compliance({"rfc": suite}))
    found = cuts.cuts(run, KNOWN, EVIDENCE)
    assert found is not None
    shown = [side for one in found.divided for side in one.sides if side.cut is not None]
    assert len(shown) == cuts.SHOWN_MAX
    assert found.left_out == 21 - cuts.SHOWN_MAX
    assert found.divided[3].family == designed()[0], "a case of a family is named by it"


def test_one_write_only_is_said_to_be_all_that_was_asked() -> None:
    suite = msgspec.structs.replace(rfc_suite("reference"), deliveries=None)
    run = complete_run(("reference",), only=OCTET_FAMILIES)
    run = with_server(run, "reference", compliance=Compliance({"rfc": suite}))
    assert cuts.cuts(run, KNOWN, EVIDENCE) is None
    page = report.render(run, EVIDENCE)
    assert "every message went out in one write" in page
    assert "No message drew another answer" not in page


def test_agreement_of_all_cuts_is_said() -> None:
    run = complete_run(("reference",), only=OCTET_FAMILIES)
    page = report.render(run, EVIDENCE)
    assert "No message drew another answer for being cut." in page
