"""What bytes outside the grammar may be taken for, held against the whole catalogue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from httpmark.harness.catalogue import catalogue, loading, notation, vocabulary
from httpmark.harness.catalogue.expectation import Alternative
from httpmark.harness.http import request_reader, tolerances
from httpmark.harness.http.request_reader import Broken
from httpmark.harness.model.cases import Family, Op

KNOWN = loading.load()
SAMPLE = 200  # cases of a generated family
LARGE = 200_000
# A coding besides chunked may be decoded and accepted; whether it was, nothing here can tell.
DECODED = {"transfer-encoding-gzip-chunked", "transfer-encoding-gzip-chunked-lines"}
# The line that CR cuts is broken in another way, too, and counts as that.
# Contested cases do not bind, whatever the strict reading says.
LEVELS = {
    "cr-after-request-line",
    "transfer-encoding-empty",
    "transfer-encoding-blank",
    "transfer-encoding-comma",
}


def broken() -> Iterator[tuple[Family, catalogue.Planned, bytes]]:
    """Each case that is one message outside the grammar."""
    for family in KNOWN.families.values():
        rule = KNOWN.rules[family.id]
        is_several = len(rule.sends) > 1 and family.group not in ("TE", "CLTE")
        is_own = family.suite in ("seed", "found") or family.runner is not None
        if is_own or not rule.sends or is_several:
            continue
        if family.group in ("PATHX", "SEM") or KNOWN.inapplicable(family.id, vocabulary.EVERYTHING):
            continue
        step = max(1, family.count // SAMPLE)
        for planned in KNOWN.planned(family.id, vocabulary.EVERYTHING, step=step):
            case = planned.case
            octets = b"".join(
                step.data
                for step in case.steps
                if step.op is Op.SEND and not step.if_unanswered and step.data != case.canary
            )
            requests = request_reader.read(octets).requests
            if case.joined or len(octets) > LARGE or len(requests) != 1:
                continue
            if not requests[0].valid and requests[0].end == len(octets):
                yield family, planned, octets


def takes(alternatives: tuple[Alternative, ...]) -> bool:
    words = [alternative.answers[0].word for alternative in alternatives]
    return any(word in ("ACC", "PARSED", "EITHER", "ONE") or word[:1] == "2" for word in words)


def test_what_the_catalogue_tolerates_is_tolerated_and_nothing_else() -> None:
    seen = 0
    wrong: list[str] = []
    for _, planned, octets in broken():
        seen += 1
        expected = planned.expectation
        assert expected is not None
        is_taken = takes((*expected.passes, *expected.allows, *expected.noteds))
        if is_taken != (tolerances.tolerance(octets) is not None):
            wrong.append(planned.case.id)
    assert seen > 4000
    assert set(wrong) == DECODED


def test_what_is_refused_binds_as_the_catalogue_says() -> None:
    wrong = {
        planned.case.id
        for _, planned, octets in broken()
        if tolerances.tolerance(octets) is None
        and planned.case.id not in DECODED
        and (rule := tolerances.rule(octets)) is not None
        and rule.level is not planned.level
    }
    assert wrong == LEVELS


def test_every_rule_has_its_clause() -> None:
    assert tolerances.RULES.keys() == set(Broken)


@pytest.mark.parametrize("octet", range(256))
def test_any_byte_stands_in_a_text(octet: int) -> None:
    assert notation.expand(tolerances.text(bytes((octet,))), {}) == bytes((octet,))


def test_what_is_broken_after_what_may_be_mended_is_what_counts() -> None:
    octets = b"GET / HTTP/1.1\nHost: a:80:\r\n\r\n"
    assert tolerances.broken(octets) is Broken.HOST
    assert tolerances.part(Broken.HOST) == "field section"
    assert tolerances.tolerance(octets) is None
    assert tolerances.tolerance(octets.replace(b"80:", b"80")) is not None


def test_a_valid_message_is_taken_for_itself() -> None:
    octets = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    assert tolerances.rule(octets) is None
    taken = tolerances.tolerance(octets)
    assert taken is not None
    assert (taken.octets, taken.allows) == (octets, ())
