"""Which cases are played at proxies, and how long they wait."""

from __future__ import annotations

import socket
from typing import cast

import pytest

from httpmark.harness.catalogue import loading, lookup
from httpmark.harness.firing import forwarding
from httpmark.harness.firing.forwarding import AGAIN, FIRST
from httpmark.harness.model.cases import Case, Op, Step
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.forwarding import Upstream
from httpmark.harness.servers.recording_tap import Tap
from httpmark.harness.tests.shared import peers

FACTS = forwarding.facts_of("127.0.0.1:81", "127.0.0.1", 81)


def test_the_cases_of_both_suites_are_chosen_and_what_is_left_out_is_counted() -> None:
    known = loading.load()
    cases, left = forwarding.chosen(known, FACTS)
    assert {one.suite for one in cases} == {"forwarding", "rfc", "smuggling"}
    assert len({one.case.id for one in cases}) == len(cases)
    told = {one.why: one.cases for one in left}
    families = [family for suite in forwarding.SUITES for family in known.of_suite(suite)]
    views = sum(
        family.count
        for family in families
        if family.runner is None
        and not lookup.has_octets(known, family.id)
        and not known.inapplicable(family.id, FACTS)
    )
    own = sum(one.suite == "forwarding" for one in cases)
    assert len(cases) - own + sum(told.values()) + views == sum(one.count for one in families)


def test_single_cases_are_chosen_by_id_family_and_number() -> None:
    known = loading.load()
    words = ["get-plain", "forwarded-get", "field_value_octet_only-00", "CLTE-02"]
    only = forwarding.known_ids(known, words, FACTS)
    cases, _ = forwarding.chosen(known, FACTS, only=only)
    assert sorted(one.case.id for one in cases) == [
        "content-length-then-transfer-encoding-short", "field_value_octet_only-00",
        "forwarded-get", "get-plain",
    ]  # fmt: skip


def test_a_case_waits_no_longer_than_it_must_and_sends_the_same() -> None:
    steps = (
        Step(Op.SEND, b"a"), Step(Op.PAUSE, wait_ms=900), Step(Op.SEND, b"b"),
        Step(Op.AWAIT, wait_ms=2000), Step(Op.WATCH, wait_ms=80), Step(Op.CLOSE_WAIT, wait_ms=1500),
    )  # fmt: skip
    case = Case("c", "c", steps)
    short = forwarding.bounded(case, FIRST)
    assert short.sent == case.sent
    assert [one.wait_ms for one in short.steps] == [0, 10, 0, FIRST.answer_ms, 10]
    again = forwarding.bounded(case, AGAIN)
    assert again.deadline_ms > short.deadline_ms
    assert [one.wait_ms for one in again.steps] == [0, 50, 0, AGAIN.answer_ms, 50]


class _Tap:
    """What a proxy without an origin passes on."""

    def quiet_for(self) -> float:
        return 60.0

    def now(self) -> tuple[Upstream, ...]:
        return ()

    def cut(self, *, deadline_s: float) -> tuple[Upstream, ...]:
        return ()


@pytest.mark.process
@pytest.mark.parametrize(("refusals", "said"), [(2, "it did not reach"), (3, "it answered 502")])
def test_a_plain_request_that_meets_a_cut_connection_is_sent_again(
    refusals: int, said: str
) -> None:
    """502 is what a proxy answers that may not send a POST twice."""
    asked: list[bytes] = []

    def handler(connection: socket.socket) -> None:
        asked.append(peers.head(connection))
        is_refused = len(asked) <= refusals
        connection.sendall(peers.OK.replace(b"200 OK", b"502 No") if is_refused else peers.OK)

    with (
        peers.peer(handler) as peer,
        forwarding.Player("127.0.0.1", peer.port, cast(Tap, _Tap()), lambda: None) as player,
        pytest.raises(Unusable, match=f"does not forward a plain GET: {said}"),
    ):
        player.own_minor(FACTS)
    assert len(asked) == 3
