"""Rules for single cases, each with one that is as it should be, one that is not, one unproven."""

from __future__ import annotations

import re

import msgspec
import pytest

from httpmark.harness.catalogue import case_builder, expectation, loading, vocabulary
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.judging import judge, matching, observation, single_case_rules
from httpmark.harness.model.cases import Case, Facts
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared.made_answers import answer, shown

FACTS = Facts(host="a:1", capabilities=("hello", "body", "mirror"))
HELLO = Facts(host="a:1")
GET = r"GET {p}?id=%d HTTP/1.1\r\nHost: {h}\r\n\r\n"
OK = answer(200)
CLOSING = answer(200, close=True)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
OWN = shown("/mirror?canary-c")

# What goes by: a number of bytes sent, bytes that come, or an end.
FIN, RST, OWN_FIN, CLOSE_NOTIFY = "fin", "reset", "own fin", "close_notify"
KINDS = {FIN: 3, RST: 4, OWN_FIN: 5, CLOSE_NOTIFY: 6}
Event = int | bytes | str
CANARY = -1  # as many bytes as the canary has


def played(
    *events: Event,
    send: str | tuple[str, ...] = GET % 0,
    facts: Facts = FACTS,
    ms: dict[int, int] | None = None,
    **rule: object,
) -> tuple[Case, Exchange]:
    """A case and a made exchange of it.

    :param ms: when an event goes by, where that is not 1 ms after the one before it.
    """
    sends = (send,) if isinstance(send, str) else send
    given = {"canary": "after", "timeline": True, **rule}
    case = next(case_builder.cases("c", Rule(sends=sends, **given), facts))  # type: ignore[arg-type]
    records = b""
    received = b""
    sent = 0
    now = 0
    for number, event in enumerate(events):
        now = (ms or {}).get(number, now + 1)
        if isinstance(event, bytes):
            kind, octets = 2, len(event)
            received += event
        elif isinstance(event, int):
            kind, octets = 1, len(case.canary) if event == CANARY else event
            sent += octets
        else:
            kind, octets = KINDS[event], 0
        records += EVENT_RECORD.pack(kind, 1000 * now, octets)
    end = End.CLOSED if FIN in events else End.RESET if RST in events else End.OPEN
    first = next((number for number, event in enumerate(events) if isinstance(event, bytes)), None)
    exchange = Exchange(
        "c", "c", case.sent, received,
        Outcome.ANSWERED if received else Outcome.HUNG if end is End.OPEN else Outcome.CLOSED,
        end, None if first is None else 1000 * ((ms or {}).get(first, first + 1)), 1000 * now, sent,
        timeline=records,
    )  # fmt: skip
    return case, exchange


def said(name: str, made: tuple[Case, Exchange]) -> bool | None:
    case, exchange = made
    played = observation.Played(case, exchange, observation.sight(case, exchange))
    return single_case_rules.RULES[name](played)[0]


def judgement(passes: str, made: tuple[Case, Exchange]) -> matching.Judgement:
    case, exchange = made
    return matching.judge(
        case, exchange, observation.sight(case, exchange),
        expectation.expectation([passes], values={}),
    )  # fmt: skip


def word(passes: str, made: tuple[Case, Exchange]) -> Word:
    return judgement(passes, made).word


REFUSED = answer(414, close=True)


@pytest.mark.parametrize(
    ("name", "events", "says"),
    [
        ("in_sync_after_refusal", (50, REFUSED, FIN), True),
        ("in_sync_after_refusal", (50, answer(414), CANARY, OWN), True),
        ("in_sync_after_refusal", (50, answer(414), CANARY), False),
        ("in_sync_after_refusal", (50, answer(414), CANARY, shown("/smug")), False),
        ("in_sync_after_refusal", (50, answer(414), CANARY, answer(400)), False),
        ("in_sync_after_refusal", (50, answer(414), OK, CANARY, OWN), False),
        ("in_sync_after_refusal", (50, answer(414), CANARY, OWN, OK), False),
        ("in_sync_after_refusal", (50, answer(414) + b"junk\r\n\r\n", FIN), False),
        ("in_sync_after_refusal", (50, OK, CANARY, OWN), None),
        ("in_sync_after_refusal", (50, FIN), None),
        ("bare_interim", (50, CONTINUE, 5, OK), True),
        ("bare_interim", (50, b"HTTP/1.1 100 C\r\nContent-Length: 0\r\n\r\n", 5, OK), False),
        ("bare_interim", (50, b"HTTP/1.1 100 C\r\nTransfer-Encoding: x\r\n\r\n", 5, OK), False),
        ("bare_interim", (50, CONTINUE + b"content" + OK), False),
        ("bare_interim", (50, OK), None),
        ("content_given_up", (50, CONTINUE, answer(408, close=True), FIN), True),
        ("content_given_up", (50, CONTINUE, FIN), True),
        ("content_given_up", (50, CONTINUE, RST), True),
        ("content_given_up", (50, CONTINUE), False),
        ("content_given_up", (50, answer(400)), None),
        ("content_given_up", (50,), None),
        ("close_announced", (50, answer(400, close=True), FIN), True),
        ("close_announced", (50, answer(400), FIN), False),
        ("close_announced", (50, answer(400)), None),
        ("close_announced", (50, FIN), None),
        ("close_notify", (50, CLOSING, CLOSE_NOTIFY, FIN), True),
        ("close_notify", (50, CLOSING, FIN), False),
        ("close_notify", (50, CLOSING, RST), False),
        ("close_notify", (50, CLOSING), False),
        ("unasked_close_announced", (50, CLOSING, FIN), True),
        ("unasked_close_announced", (50, OK, FIN), False),
        ("unasked_close_announced", (50, OK, 50, OK), None),
        ("unasked_close_announced", (50, OK), None),
    ],
)
def test_a_rule_holds_or_not_or_cannot_be_seen(
    name: str, events: tuple[Event, ...], says: bool | None
) -> None:
    assert said(name, played(*events)) is says


QUICK = shown("/mirror?id=1")


@pytest.mark.parametrize(
    ("first", "ends", "word"),
    [
        (OK + QUICK, False, Word.PASS),
        (OK + QUICK, None, Word.FAIL),  # the next request is not answered
        (OK + shown("/mirror?id=0"), False, Word.FAIL),
        (OK + answer(404), False, Word.FAIL),
        (QUICK + OK, False, Word.FAIL),
        (CLOSING, True, Word.WARN),  # RFC 9112 9.3: who closes answers no further request
        (OK, True, Word.FAIL),
        (shown("/mirror?id=1", close=True), True, Word.FAIL),  # the quick answer came first
    ],
)
def test_a_slow_answer_comes_first_and_may_be_the_last(
    first: bytes, ends: bool | None, word: Word
) -> None:
    """:param ends: whether the server closes; None: it falls silent."""
    assert slow_then_quick(first, ends, at_ms=510) is word


def test_a_slow_place_that_answers_at_once_is_not_slow() -> None:
    assert slow_then_quick(OK + QUICK, False, at_ms=5) is Word.FAIL


def slow_then_quick(first: bytes, ends: bool | None, at_ms: int) -> Word:
    facts = Facts(host="a:1", capabilities=("hello", "mirror", "behave"))
    planned = next(loading.load().planned("pipeline-slow-get", facts))
    asked = len(planned.case.canary)
    own = shown("/mirror?canary-pipeline-slow-get")
    rest: tuple[Event, ...] = (FIN,) if ends else (asked,) if ends is None else (asked, own)
    made = played(90, first, *rest, facts=facts, ms={1: at_ms})[1]
    sent = planned.case.sent
    first_us = made.first_us if made.first_us is not None else 1000 * at_ms
    exchange = msgspec.structs.replace(made, sent=sent, sent_octets=len(sent), first_us=first_us)
    return judge.Judge().judge(planned, exchange).word


def test_the_cost_of_ten_times_the_chunks_is_linear() -> None:
    def took(small_ms: int, large_ms: int) -> bool | None:
        at = {0: 0, 1: small_ms, 2: small_ms, 3: small_ms + large_ms}
        return said("linear_cost", played(50, OK, 500, OK, ms=at, canary="none", answers=2))

    assert took(10, 900) is True
    assert took(100, 1900) is True
    assert took(100, 2100) is False
    assert said("linear_cost", played(50, OK)) is False
    assert said("linear_cost", played(50, CLOSING, FIN)) is None


def test_answers_may_end_early_where_a_close_is_announced_and_comes() -> None:
    send = GET % 0 + GET % 1
    whole = shown("/mirror?id=0") + shown("/mirror?id=1")
    last = shown("/mirror?id=0", close=True)
    passes = "ACC*2; fewer"

    def of(*events: Event) -> Word:
        return word(passes, played(90, *events, send=send, answers=2))

    assert of(whole, CANARY, OWN) is Word.PASS
    assert of(last, FIN) is Word.PASS
    assert of(last) is Word.FAIL
    assert of(shown("/mirror?id=0"), FIN) is Word.FAIL
    assert of(answer(400, close=True), FIN) is Word.FAIL
    assert of(FIN) is Word.FAIL
    assert word("ACC*2", played(90, last, FIN, send=send, answers=2)) is Word.FAIL


def test_prompt_is_an_answer_before_each_later_write() -> None:
    two = (r"POST {p} HTTP/1.1\r\nHost: {h}\r\nContent-Length: 5\r\n\r\n", "hello")

    def of(*events: Event) -> Word:
        return word("ONE; prompt", played(*events, send=two))

    assert of(60, CONTINUE, 5, OK, CANARY, OWN) is Word.PASS
    assert of(60, OK, 5, CANARY, OWN) is Word.PASS
    assert of(60, 5, OK, CANARY, OWN) is Word.FAIL
    assert of(60, 5, CONTINUE, OK, CANARY, OWN) is Word.FAIL
    # Held back is all that is wrong with one of these: among many in flight it may be load.
    held = judgement("ONE; prompt", played(60, 5, OK, CANARY, OWN, send=two))
    assert held.late
    refused = judgement("ACC; prompt", played(60, 5, answer(400), CANARY, OWN, send=two))
    assert refused.word is Word.FAIL
    assert not refused.late


def test_before_fin_is_a_header_section_before_the_half_close() -> None:
    def of(*events: Event) -> Word:
        return word("2xx; before fin; close", played(*events, canary="none"))

    assert of(50, OK, OWN_FIN, FIN) is Word.PASS
    assert of(50, OWN_FIN, OK, FIN) is Word.FAIL
    assert of(50, OK, FIN) is Word.FAIL


def test_one_interim_answer_is_told_from_two() -> None:
    one, two = played(50, CONTINUE, 5, OK), played(50, CONTINUE, CONTINUE, 5, OK)
    assert word("ONE; with one 100; loose", one) is Word.PASS
    assert word("ONE; with one 100; loose", two) is Word.FAIL
    assert word("ONE; with 100; loose", two) is Word.PASS


def test_content_is_asked_only_of_who_shows_it() -> None:
    send = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nContent-Length: 5\r\n\r\nhello"
    right = shown(method="POST", content=b"hello")
    wrong = shown(method="POST", content=b"hell")
    made = {"send": send, "canary": "none"}
    assert word("ACC; content? hello", played(60, right, **made)) is Word.PASS  # type: ignore[arg-type]
    assert word("ACC; content? hello", played(60, wrong, **made)) is Word.FAIL  # type: ignore[arg-type]
    assert word("ACC; empty?", played(60, wrong, **made)) is Word.FAIL  # type: ignore[arg-type]
    unseen = played(60, OK, facts=HELLO, **made)  # type: ignore[arg-type]
    assert word("ACC; content? hello", unseen) is Word.PASS
    assert word("ACC; content hello", unseen) is Word.NOT_APPLICABLE


def head_of(*fields: str, length: int | None = None) -> bytes:
    """An answer to HEAD."""
    lines = ["HTTP/1.1 200 x", *fields]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


SERVER = "Server: a"
PAGE = answer(200, b"hello", SERVER)
SWITCH = b"HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"


@pytest.mark.parametrize(
    ("name", "methods", "events", "says"),
    [
        ("head_fields", ("GET", "HEAD"), (9, PAGE, 9, head_of(SERVER, length=5)), True),
        ("head_fields", ("GET", "HEAD"), (9, PAGE, 9, head_of(SERVER)), True),
        ("head_fields", ("GET", "HEAD"), (9, PAGE, 9, head_of(length=5)), False),
        ("head_fields", ("GET", "HEAD"), (9, PAGE, 9, head_of(SERVER, "X-A: b")), False),
        ("head_fields", ("GET", "HEAD"), (9, PAGE), False),
        ("head_fields", ("GET", "HEAD"), (9, CLOSING, FIN), None),
        ("head_fields", ("GET", "HEAD"), (9, PAGE, FIN), False),
        ("head_length", ("HEAD", "GET"), (9, head_of(length=5), 9, PAGE), True),
        ("head_length", ("HEAD", "GET"), (9, head_of(), 9, PAGE), True),
        ("head_length", ("HEAD", "GET"), (9, head_of(length=6), 9, PAGE), False),
        ("head_length", ("HEAD", "GET"), (9, head_of(length=0), 9, PAGE), False),
        ("head_length", ("HEAD", "GET"), (9, head_of("Connection: close"), FIN), None),
        ("head_length", ("HEAD", "GET"), (9, head_of("Connection: close") + b"x", FIN), False),
        ("allow_on_405", ("PUT", "PUT"), (9, answer(405, b"", "Allow: GET"), 9, OK), True),
        ("allow_on_405", ("PUT", "PUT"), (9, answer(405, b"", "Allow:"), 9, answer(405)), False),
        ("allow_on_405", ("PUT", "PUT"), (9, OK, 9, answer(501)), None),
        ("upgrade_on_426", ("GET",), (9, answer(426, b"", "Upgrade: a")), True),
        ("upgrade_on_426", ("GET",), (9, answer(426)), False),
        ("upgrade_on_426", ("GET",), (9, answer(400)), None),
        ("timeout_announced", ("GET",), (9, answer(408, close=True), FIN), True),
        ("timeout_announced", ("GET",), (9, answer(408), FIN), False),
        ("timeout_announced", ("GET",), (9, FIN), None),
        ("timeout_announced", ("GET",), (9, answer(400, close=True), FIN), None),
        ("http2_upgrade", ("GET",), (9, SWITCH, SETTINGS), True),
        ("http2_upgrade", ("GET",), (9, SWITCH), False),
        ("http2_upgrade", ("GET",), (9, SWITCH, OK), False),
        ("http2_upgrade", ("GET",), (9, OK), False),
        ("content_before_switch", ("GET",), (9, SWITCH, CANARY), True),
        ("content_before_switch", ("GET",), (9, SWITCH, CANARY, b"junk"), True),
        ("content_before_switch", ("GET",), (9, SWITCH, b"\x88\x00", CANARY), False),
        ("content_before_switch", ("GET",), (9, SWITCH, FIN), False),
        ("content_before_switch", ("GET",), (9, OK), False),
    ],
)
def test_methods_and_switches(
    name: str, methods: tuple[str, ...], events: tuple[Event, ...], says: bool | None
) -> None:
    made = played(*events, send=tuple(GET % n for n in range(len(methods))), methods=methods)
    assert said(name, made) is says


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        ((200, 304, 304, 304), True),
        ((200, 304, 200, 304), False),
        ((200, 304, 304, 200), False),
        ((200, 200, 200, 200), None),
        ((404, 404, 404, 404), None),
    ],
)
def test_dates_in_three_formats(statuses: tuple[int, ...], says: bool | None) -> None:
    events: list[Event] = []
    for status in statuses:
        events += [9, answer(status)]
    sends = tuple(GET % n for n in range(4))
    made = played(*events, send=sends, methods=("GET",) * 4)
    assert said("three_date_formats", made) is says


def test_each_rule_is_told_to_people_and_used_by_a_scenario() -> None:
    scenarios = "".join(path.read_text("utf-8") for path in loading.FOLDER.rglob("*.toml"))
    used = set(re.findall(r"talk\.(\w+)", scenarios))
    assert single_case_rules.RULES.keys() == vocabulary.SINGLE_CASE_RULES.keys() == used
    assert all(rule.__name__ == name for name, rule in single_case_rules.RULES.items())
