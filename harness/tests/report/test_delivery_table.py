"""Deliveries that disagree: told with both answers; what was not asked is no agreement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.timeline import EVENT_RECORD, EventKind
from httpmark.harness.model.verdicts import Compliance
from httpmark.harness.report import delivery_table, html_page
from httpmark.harness.tests.shared.made_run import (
    BAD,
    HOSTILE,
    OCTET_FAMILIES,
    CompleteEvidence,
    complete_run,
    designed,
    rfc_suite,
    with_server,
)

KNOWN = loading.load()
NAMES = ("reference", "go_net_http", "rust_hyper")
RUN = complete_run(NAMES, only=OCTET_FAMILIES)
EVIDENCE = CompleteEvidence(only=OCTET_FAMILIES)


def test_a_message_stands_once_with_every_server_that_divides_it() -> None:
    found = delivery_table.cuts(RUN, KNOWN, EVIDENCE)
    assert found is not None
    assert [(one.server, one.cuts) for one in found.tallies] == [(name, 2235) for name in NAMES]
    [divided] = found.divided
    assert divided.family == designed()[0]
    assert [side.server for side in divided.sides] == ["go_net_http", "rust_hyper"]
    for side in divided.sides:
        assert (side.alone, side.cut) == (BAD, HOSTILE)
    assert found.left_out == 0


def test_without_evidence_it_is_told_all_the_same() -> None:
    found = delivery_table.cuts(RUN, KNOWN, None)
    assert found is not None
    assert found.left_out == 2
    assert found.divided[0].sides[0].cut is None
    assert "in 3 deliveries: two@17, two@18, byte" in html_page.render(RUN, None)


def test_each_says_how_to_cut_it_again() -> None:
    asked = "http://127.0.0.1:8080/"
    run = with_server(RUN, "go_net_http", again=(asked,))
    found = delivery_table.cuts(run, KNOWN, EVIDENCE)
    assert found is not None
    first, second = found.divided[0].sides
    case = designed()[0].id
    # Writes that are not known cannot be typed: one write would draw the other answer.
    assert first.again == f"httpmark check {asked} --suite rfc --case {case} --full"
    assert second.again == f"httpmark check TARGET --suite rfc --case {case} --full"
    page = html_page.render(run, EVIDENCE)
    assert f'<pre class="again">{first.again}</pre>' in page


class Timed(CompleteEvidence):
    """The same, with the record of two writes: of 17 bytes, and of the others."""

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        for one in super().exchanges(server, **wanted):
            writes = ((EventKind.SENT, 0, 17), (EventKind.SENT, 5, len(one.sent) - 17))
            timeline = b"".join(EVENT_RECORD.pack(*write) for write in writes)
            yield msgspec.structs.replace(one, timeline=timeline)


def test_what_was_cut_in_two_is_typed_in_two() -> None:
    found = delivery_table.cuts(RUN, KNOWN, Timed(only=OCTET_FAMILIES))
    assert found is not None
    again = found.divided[0].sides[0].again
    assert again.startswith("python3 -c ")
    assert again.count("s.sendall(") == 2
    # Nothing listens any more where check started the server itself.
    run = with_server(RUN, "go_net_http", again=("--serve", "./s {port}"))
    found = delivery_table.cuts(run, KNOWN, Timed(only=OCTET_FAMILIES))
    assert found is not None
    assert found.divided[0].sides[0].again.startswith("httpmark check --serve './s {port}'")


def test_only_a_few_stand_with_their_bytes() -> None:
    suite = rfc_suite("go_net_http")
    assert suite.deliveries is not None
    one = suite.deliveries.disagreements[0]
    many = tuple(msgspec.structs.replace(one, case=f"{one.case}-{at:02}") for at in range(20))
    suite = msgspec.structs.replace(
        suite, deliveries=msgspec.structs.replace(suite.deliveries, disagreements=many)
    )
    run = with_server(RUN, "go_net_http", compliance=Compliance({"rfc": suite}))
    found = delivery_table.cuts(run, KNOWN, EVIDENCE)
    assert found is not None
    shown = [side for one in found.divided for side in one.sides if side.cut is not None]
    assert len(shown) == delivery_table.SHOWN_MAX
    assert found.left_out == 21 - delivery_table.SHOWN_MAX
    assert found.divided[3].family == designed()[0], "a case of a family is named by it"


def test_one_write_only_is_said_to_be_all_that_was_asked() -> None:
    suite = msgspec.structs.replace(rfc_suite("reference"), deliveries=None)
    run = complete_run(("reference",), only=OCTET_FAMILIES)
    run = with_server(run, "reference", compliance=Compliance({"rfc": suite}))
    assert delivery_table.cuts(run, KNOWN, EVIDENCE) is None
    page = html_page.render(run, EVIDENCE)
    assert "every message was sent in one write" in page
    assert "No message drew another answer" not in page


def test_agreement_of_all_cuts_is_said() -> None:
    run = complete_run(("reference",), only=OCTET_FAMILIES)
    page = html_page.render(run, EVIDENCE)
    assert "Every message got the same answer in pieces as in one write." in page
