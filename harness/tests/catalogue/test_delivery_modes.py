"""The cuts: what they add up to, and what counts as a difference between them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpmark.harness.catalogue import delivery_modes, loading
from httpmark.harness.catalogue.delivery_modes import Known
from httpmark.harness.judging import answer_difference
from httpmark.harness.judging.answer_difference import Compared
from httpmark.harness.model.cases import Await, Case, Facts, Family, Op, Step
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD

FACTS = Facts(host="127.0.0.1:8080", capabilities=("behave", "body", "hello", "mirror"))
KNOWN = Known(before=b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
CANARY = b"GET /?canary-x HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: %s\r\n\r\nok"
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


def a_case(octets: bytes = GET, canary: bytes = CANARY) -> Case:
    return Case(
        "x",
        "x",
        (
            Step(Op.SEND, octets),
            Step(Op.AWAIT, wait_ms=2000),
            Step(Op.WATCH, wait_ms=80, if_open=True),
            Step(Op.SEND, canary, if_open=True),
            Step(Op.AWAIT, wait_ms=2000, if_open=True),
        ),
        methods=(b"GET",),
        canary=canary,
    )


def drew(
    case: Case,
    *answers: bytes,
    end: End = End.OPEN,
    writes: int | None = None,
    before_write: int = 0,
) -> Compared:
    """What an exchange says in which the answers but the last came before the canary.

    :param writes: of all writes of the case so many went out, the rest was left.
    :param before_write: answers that came before the last write of the message.
    """
    sends = [step.data for step in case.steps if step.op is Op.SEND]
    own, canary = sends[:-1], sends[-1]
    out = own if writes is None else own[:writes]
    records = [(1, len(piece)) for piece in out[:-1]]
    records += [(2, len(answer)) for answer in answers[:before_write]]
    records += [(1, len(piece)) for piece in out[-1:]]
    alive = end is End.OPEN and writes is None
    first = answers[before_write:-1] if alive else answers[before_write:]
    records += [(2, len(answer)) for answer in first]
    if alive:
        records += [(1, len(canary))] + [(2, len(answer)) for answer in answers[-1:]]
    if end is not End.OPEN:
        records.append((3, 0))
    timeline = b"".join(
        EVENT_RECORD.pack(kind, 1000 * at, octets) for at, (kind, octets) in enumerate(records)
    )
    received = b"".join(answers)
    return answer_difference.compared(
        case,
        Exchange(
            case.id,
            case.family,
            case.sent,
            received,
            Outcome.ANSWERED if received else Outcome.CLOSED,
            end,
            1000,
            99_000,
            sum(octets for kind, octets in records if kind == 1),
            timeline=timeline,
        ),
    )


@functools.cache
def corpus() -> tuple[tuple[Family, Case], ...]:
    """The delivery corpus, addressed to a target that can do everything it needs."""
    known = loading.load()
    found: list[tuple[Family, Case]] = []
    for family in known.families.values():
        varied = any(ref in delivery_modes.VARIATIONS for ref in family.refs)
        if family.deliver or varied:
            found += [
                (family, case)
                for case in known.cases(family.id, FACTS)
                if delivery_modes.is_delivered(family, case.id)
            ]
    return tuple(found)


def cut(mode: str) -> Iterator[tuple[Case, Case]]:
    for _, case in corpus():
        for made in delivery_modes.deliveries(case, mode, KNOWN):
            yield case, made


# --- the cuts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["byte", "two", "three", "crlf", "tail"])
def test_the_pieces_joined_are_the_bytes(mode: str) -> None:
    wrong = []
    for case, made in cut(mode):
        pieces = [step.data for step in made.steps if step.op is Op.SEND]
        whole = delivery_modes.message(case) + (b"" if case.joined else case.canary)
        kept = (made.id, made.canary) == (case.id, case.canary)
        if not all(pieces) or b"".join(pieces) != whole or not kept:
            wrong.append(f"{case.id} {made.delivery}")
    assert wrong == []


@pytest.mark.parametrize(
    ("mode", "least", "most"),
    [
        ("byte", 100, 115),
        ("two", 9_000, 9_900),
        ("three", 14_500, 15_600),
        ("crlf", 100, 115),
        ("tail", 100, 115),
        ("join", 200, 230),
    ],
)
def test_a_mode_makes_as_many_cuts_as_the_catalogue_says(mode: str, least: int, most: int) -> None:
    assert least <= sum(1 for _ in cut(mode)) <= most


def test_a_cut_has_a_name_of_its_own() -> None:
    wrong = []
    for _, case in corpus():
        names = [
            made.delivery
            for mode in delivery_modes.MODES
            for made in delivery_modes.deliveries(case, mode, KNOWN)
        ]
        modes = {delivery_modes.mode_of(name) for name in names}
        if len(names) != len(set(names)) or not modes <= set(delivery_modes.MODES):
            wrong.append(case.id)
    assert wrong == []


def test_one_byte_a_write_but_for_bulk_content() -> None:
    wrong = [
        f"{case.id}: {len(step.data)}"
        for case, made in cut("byte")
        for step in made.steps
        if step.op is Op.SEND
        and step.data != case.canary
        and 1 < len(step.data) <= delivery_modes.BULK_BYTES
    ]
    assert wrong == []


def test_bulk_content_is_cut_at_its_edges_only() -> None:
    octets = (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n"
        + b"a" * 2048
        + b"\r\n0\r\n\r\n"
    )
    ((start, end),) = delivery_modes.bulk(octets)
    assert octets[start:end] == b"a" * 2048
    inside = [at for at in delivery_modes.cuts(octets) if start <= at <= end]
    assert inside == [start, start + 1, start + 2, end - 2, end - 1, end]
    plain = b"POST / HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + b":" * 2000
    assert delivery_modes.bulk(plain) == [(len(plain) - 2000, len(plain))]
    assert max(delivery_modes.structure(plain)) < len(plain) - 2000


def test_both_cuts_of_a_pair_lie_near_the_same_structural_byte() -> None:
    octets = b"GET /aaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n"
    structural = [octets.index(b" "), octets.rindex(b" "), len(octets) - 2, len(octets) - 1]
    assert delivery_modes.structure(octets) == structural
    for a, b in delivery_modes.pairs(octets):
        assert a < b
        assert any(abs(a - at) <= 2 and abs(b - at) <= 2 for at in structural)


def test_digits_of_lengths_are_structure_and_other_digits_are_not() -> None:
    octets = b"POST /7 HTTP/1.1\r\nX: 9\r\nContent-Length: 12\r\n\r\n" + b"a" * 12
    digits = [octets[at] for at in delivery_modes.structure(octets) if chr(octets[at]).isdigit()]
    assert bytes(digits) == b"12"
    octets = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"
    digits = [octets[at] for at in delivery_modes.structure(octets) if chr(octets[at]).isalnum()]
    assert bytes(digits) == b"A0"


def test_a_pause_stands_between_cr_and_lf_of_every_crlf() -> None:
    ((case, made),) = [(a, b) for a, b in cut("crlf") if a.id == corpus()[0][1].id]
    pieces = [step.data for step in made.steps if step.op is Op.SEND][:-1]
    assert len(pieces) == delivery_modes.message(case).count(b"\r\n") + 1
    assert all(piece.endswith(b"\r") for piece in pieces[:-1])


@given(st.integers(min_value=13, max_value=20_000))
def test_padding_is_lines_of_at_most_1000_bytes_with_names_of_their_own(octets: int) -> None:
    made = delivery_modes.padding(octets)
    assert len(made) == octets
    lines = made.split(b"\r\n")
    assert lines.pop() == b""
    assert all(re.fullmatch(rb"X-Pad-[0-9]{2,}: a+", line) and len(line) <= 998 for line in lines)
    assert len({line.partition(b":")[0] for line in lines}) == len(lines)


def test_padding_of_no_field_line_is_refused() -> None:
    with pytest.raises(ValueError, match="12 bytes"):
        delivery_modes.padding(12)


def test_each_structural_byte_lands_on_each_edge_of_a_buffer() -> None:
    octets = b"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"
    behind = [at for at in delivery_modes.structure(octets) if at >= octets.index(b"A:")]
    made = list(delivery_modes.deliveries(a_case(octets), "buf", KNOWN))
    assert len(made) == 9 * len(behind)
    for one in made:
        edge, at = map(int, re.fullmatch(r"buf@(\d+)[+-]\d:(\d+)", one.delivery).groups())  # type: ignore[union-attr]
        moved = one.steps[0].data
        shift = len(moved) - len(octets)
        assert abs(at + shift - edge) <= 1
        assert moved[at + shift] == octets[at]
        assert moved.startswith(b"GET / HTTP/1.1\r\nHost: h\r\nX-Pad-00: a")
        assert moved.endswith(b"A: b\r\n\r\n")
    assert list(delivery_modes.deliveries(a_case(b"GET / HTTP/1.1\r\n\r\n"), "buf", KNOWN)) == []


def test_padding_stands_after_all_of_a_folded_host_line() -> None:
    octets = b"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n"
    for one in delivery_modes.deliveries(a_case(octets), "buf", KNOWN):
        assert b"Host: h\r\n folded\r\nX-Pad-00: " in one.steps[0].data


def test_a_message_is_joined_to_itself_and_to_content() -> None:
    twice, glued = delivery_modes.deliveries(a_case(), "join", KNOWN)
    assert twice.steps[0].data == GET + GET
    assert sum(step.op is Op.AWAIT for step in twice.steps) == 3
    assert twice.methods == (b"GET", b"GET")
    assert glued.steps[0].data == KNOWN.before + GET
    assert glued.methods == (b"POST", b"GET")
    closing = Known(stays_open=False)
    (alone,) = delivery_modes.deliveries(a_case(), "join", closing)
    assert sum(step.op is Op.AWAIT for step in alone.steps) == 2


def test_the_last_byte_comes_late() -> None:
    (late,) = delivery_modes.deliveries(a_case(), "tail", KNOWN)
    assert [step.data for step in late.steps if step.op is Op.SEND] == [GET[:-1], b"\n", CANARY]
    assert late.steps[1] == Step(Op.PAUSE, wait_ms=50)


def test_writing_ends_with_a_close_and_after_a_refusal_with_the_answer() -> None:
    (plain,) = delivery_modes.deliveries(a_case(), "tail", KNOWN)
    assert plain.steps[2].if_open
    assert not plain.steps[2].if_unanswered
    (refused,) = delivery_modes.deliveries(a_case(), "tail", Known(refused=True))
    assert refused.steps[2].if_open
    assert refused.steps[2].if_unanswered


def test_one_write_holds_the_writes_of_a_case_and_waits_as_often() -> None:
    case = Case(
        "x",
        "x",
        (
            Step(Op.SEND, b"a"),
            Step(Op.AWAIT, wait_ms=50, kind=Await.LOOK_FINAL),
            Step(Op.SEND, b"b", if_open=True),
            Step(Op.AWAIT, wait_ms=2000),
            Step(Op.SEND, b"completed", if_unanswered=True),
            Step(Op.AWAIT, wait_ms=2000, if_unanswered=True),
        ),
    )
    made = delivery_modes.one(case)
    assert made.steps == (Step(Op.SEND, b"ab"), Step(Op.AWAIT, wait_ms=2000))
    assert made.delivery == delivery_modes.ONE


# --- the comparison ------------------------------------------------------------------------------


def first_cut(mode: str, case: Case | None = None, known: Known = KNOWN) -> Case:
    return next(delivery_modes.deliveries(case or a_case(), mode, known))


def test_the_same_answers_at_another_time_are_no_difference() -> None:
    alone = drew(delivery_modes.one(a_case()), OK % b"now", OK % b"now")
    later = drew(first_cut("two"), OK % b"then", OK % b"then")
    assert answer_difference.difference(alone, later, "two@1") == ""
    assert not answer_difference.closes(alone, later)


def test_another_status_another_field_and_other_content_are_differences() -> None:
    alone = drew(delivery_modes.one(a_case()), OK % b"", OK % b"")
    two = first_cut("two")
    assert (
        answer_difference.difference(alone, drew(two, BAD, OK % b""), "two@1")
        == "400 instead of 200"
    )
    other = (OK % b"").replace(b"ok", b"ko")
    assert "content" in answer_difference.difference(alone, drew(two, other, OK % b""), "two@1")
    other = (OK % b"").replace(b"\r\n\r\n", b"\r\nX-A: b\r\n\r\n")
    assert (
        answer_difference.difference(alone, drew(two, other, OK % b""), "two@1")
        == "other fields: x-a"
    )
    assert "next request" in answer_difference.difference(alone, drew(two, OK % b"", BAD), "two@1")


def test_a_close_in_place_of_an_open_connection_is_permitted_and_told() -> None:
    alone = drew(delivery_modes.one(a_case()), OK % b"", OK % b"")
    closing = (OK % b"").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    closed = drew(first_cut("two"), closing, end=End.CLOSED)
    assert answer_difference.difference(alone, closed, "two@1") == ""
    assert answer_difference.closes(alone, closed)
    reset = drew(first_cut("two"), closing, end=End.RESET)
    assert answer_difference.difference(alone, reset, "two@1") == ""
    bare = drew(first_cut("two"), end=End.CLOSED)
    assert answer_difference.difference(alone, bare, "two@1") == "no answer instead of 200"


def test_an_open_connection_in_place_of_a_close_is_a_difference() -> None:
    alone = drew(delivery_modes.one(a_case()), BAD, end=End.CLOSED)
    still = drew(first_cut("two"), BAD, OK % b"")
    assert (
        answer_difference.difference(alone, still, "two@1")
        == "left open, where one write got a close"
    )


def test_fin_and_reset_are_the_same_close() -> None:
    alone = drew(delivery_modes.one(a_case()), BAD, end=End.CLOSED)
    assert (
        answer_difference.difference(alone, drew(first_cut("two"), BAD, end=End.RESET), "two@1")
        == ""
    )


def test_a_refusal_before_the_last_byte_ends_the_comparison_with_it() -> None:
    alone = drew(delivery_modes.one(a_case()), BAD, end=End.CLOSED)
    byte = first_cut("byte", known=Known(refused=True))
    early = drew(byte, BAD, end=End.CLOSED, writes=5)
    assert not early.all_sent
    assert answer_difference.difference(alone, early, "byte") == ""


def test_a_success_before_the_header_section_is_whole_is_a_difference() -> None:
    alone = drew(delivery_modes.one(a_case()), OK % b"", OK % b"")
    tail = first_cut("tail")
    early = drew(tail, OK % b"", OK % b"", before_write=1)
    assert "before the header section" in answer_difference.difference(alone, early, "tail")
    refusal = drew(delivery_modes.one(a_case()), BAD, OK % b"")
    assert (
        answer_difference.difference(refusal, drew(tail, BAD, OK % b"", before_write=1), "tail")
        == ""
    )


def test_the_last_piece_is_not_the_canary_though_it_is_as_long() -> None:
    case = a_case(canary=GET[4:])
    two = next(
        one for one in delivery_modes.deliveries(case, "two", KNOWN) if one.delivery == "two@4"
    )
    seen = drew(two, BAD, end=End.CLOSED)
    assert not seen.canary_sent
    assert [answer.status for answer in seen.answers] == [400]
    assert [answer.status for answer in drew(two, OK % b"", OK % b"").after] == [200]


def test_joined_to_itself_the_answers_are_twice_those_of_one() -> None:
    alone = drew(delivery_modes.one(a_case()), OK % b"", OK % b"")
    join = first_cut("join")
    assert answer_difference.difference(alone, drew(join, *[OK % b""] * 3), "join") == ""
    assert (
        answer_difference.difference(alone, drew(join, *[OK % b""] * 2), "join")
        == "200 instead of 200, 200"
    )
    closed = drew(delivery_modes.one(a_case()), BAD, end=End.CLOSED)
    assert answer_difference.difference(closed, drew(join, BAD, end=End.CLOSED), "join") == ""
    both = drew(join, BAD, BAD, end=End.CLOSED)
    assert answer_difference.difference(closed, both, "join") == "400, 400 instead of 400"


def test_glued_to_content_the_answer_to_that_comes_first() -> None:
    glued = list(delivery_modes.deliveries(a_case(), "join", KNOWN))[1]
    alone = drew(delivery_modes.one(a_case()), OK % b"", OK % b"")
    assert answer_difference.difference(alone, drew(glued, *[OK % b""] * 3), "join@content") == ""
    found = answer_difference.difference(alone, drew(glued, BAD, end=End.CLOSED), "join@content")
    assert found == "the request before it is not answered"
    refused = drew(delivery_modes.one(a_case()), BAD, end=End.CLOSED)
    swallowed = drew(glued, BAD, end=End.CLOSED)
    assert answer_difference.difference(refused, swallowed, "join@content") == ""
    assert (
        answer_difference.difference(
            refused, drew(glued, OK % b"", BAD, end=End.CLOSED), "join@content"
        )
        == ""
    )


def test_bytes_that_are_no_response_are_a_difference() -> None:
    alone = drew(delivery_modes.one(a_case()), OK % b"", OK % b"")
    assert answer_difference.difference(
        alone, drew(first_cut("two"), b"nonsense\r\n\r\n", OK % b""), "two@1"
    )


MIRROR = (
    b'{"method": "R0VU", "target": "Lw==", "authority": null, "version": null, "content": "",'
    b' "fields": [%s], "trailers": [], "request_number": %d}'
)


def mirrored(fields: bytes, number: int) -> bytes:
    content = MIRROR % (fields, number)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content


def test_an_echo_is_compared_without_number_order_of_names_and_padding() -> None:
    a, b, pad = b'["YQ==", "MQ=="]', b'["Yg==", "Mg=="]', b'["WC1QYWQtMDA=", "YQ=="]'
    alone = drew(delivery_modes.one(a_case()), mirrored(a + b"," + b, 1), OK % b"")
    two = first_cut("two")
    same = drew(two, mirrored(b + b"," + pad + b"," + a, 10), OK % b"")
    assert answer_difference.difference(alone, same, "two@1") == ""
    content = MIRROR % (a + b"," + b + b"," + pad, 1)
    chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
    chunked = drew(two, b"HTTP/1.1 200 OK\r\n" + chunks, OK % b"")
    assert answer_difference.difference(alone, chunked, "two@1") == ""
    lost = drew(two, mirrored(a, 1), OK % b"")
    assert answer_difference.difference(alone, lost, "two@1") == "another message is understood"
