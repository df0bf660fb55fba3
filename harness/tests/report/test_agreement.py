"""Who agrees with whom: symmetric, of facts alone, and nothing void counts."""

from __future__ import annotations

from collections import Counter

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.report import agreement, byte_maps
from httpmark.harness.tests.shared.made_run import OCTET_FAMILIES, MadeEvidence, small_run

KNOWN = loading.load()
PLACES = byte_maps.places(KNOWN)


def test_agreement_is_symmetric_and_of_what_was_let_through() -> None:
    evidence = MadeEvidence(only=OCTET_FAMILIES)
    seen = {
        server.name: byte_maps.look(server, evidence, PLACES)
        for server in small_run().servers
        if not server.unavailable
    }
    found = agreement.of_bytes(seen, OCTET_FAMILIES)
    assert found
    size = len(found.names)
    for a in range(size):
        for b in range(size):
            assert found.rows[a][b] == found.rows[b][a]
    at = {name: index for index, name in enumerate(found.names)}
    assert found.rows[at["reference"]][at["null"]] == 0
    assert found.rows[at["reference"]][at["rust_hyper"]] == pytest.approx(100 * (1 - 20 / 558))


def seen_of(**readings: dict[str, str]) -> dict[str, byte_maps.Seen]:
    return {name: byte_maps.Seen({}, {}, {}, found) for name, found in readings.items()}


CASES = tuple(id for id, family in KNOWN.families.items() if family.count == 1)[:4]
ONE, TWO, THREE, FOUR = CASES


def test_cases_agree_where_both_were_asked_and_neither_is_void() -> None:
    found = agreement.of_cases(
        seen_of(
            a={ONE: "rejected", TWO: "accepted", THREE: "void", FOUR: "closed"},
            b={ONE: "rejected", TWO: "closed", THREE: "rejected"},
            c={FOUR: "mute"},
        )
    )
    assert found is not None
    assert list(found.names) == ["a", "b", "c"]
    assert [list(row) for row in found.rows] == [[100, 50, 0], [50, 100, None], [0, None, 100]]
    assert found.asked == 4


@pytest.mark.parametrize("seen", [{}, seen_of(a={ONE: "rejected"})])
def test_one_server_agrees_with_nobody(seen: dict[str, byte_maps.Seen]) -> None:
    assert agreement.of_cases(seen) is None
    assert agreement.of_bytes(seen, OCTET_FAMILIES) is None


def test_what_divides_most_stands_first_and_a_control_divides_nothing() -> None:
    seen = seen_of(
        a={ONE: "rejected", TWO: "rejected", THREE: "rejected", FOUR: "rejected"},
        b={ONE: "rejected", TWO: "closed", THREE: "accepted", FOUR: "void"},
        c={ONE: "rejected", TWO: "rejected", THREE: "mute", FOUR: "rejected"},
        null={ONE: "accepted", TWO: "accepted", THREE: "accepted", FOUR: "accepted"},
    )
    found = agreement.contested(seen, KNOWN, controls=frozenset({"null"}))
    assert [one.family.id for one in found] == [THREE, TWO]
    assert found[0].readings == ("rejected", "accepted", "mute", "accepted")


def test_no_more_than_a_few_contested_cases_are_told() -> None:
    ids = [id for id, family in KNOWN.families.items() if family.count == 1]
    seen = seen_of(a=dict.fromkeys(ids, "rejected"), b=dict.fromkeys(ids, "accepted"))
    found = agreement.contested(seen, KNOWN, controls=frozenset())
    assert len(found) == agreement.CONTESTED_MAX
    assert max(Counter(one.family.group for one in found).values()) == 2
