"""A model pair for each word and demand: a responder that conforms, and one that does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from httpmark.harness.catalogue import (
    case_builder,
    catalogue,
    expectation,
    placeholder_values,
)
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.judging import judge, matching, observation
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared.made_answers import answer, shown
from httpmark.harness.tests.shared.made_talk import (
    BODY,
    CANARY,
    CAPITALS,
    FIN,
    FOLDED,
    GET,
    HELLO,
    MIRROR,
    OTHER,
    OWN,
    POST,
    RST,
    Talk,
)

OK = Talk(shown(), canary=OWN)
BAD = Talk(answer(400, close=True), end=FIN)
BAD_OPEN = Talk(answer(400), canary=OWN)
BARE = Talk(end=FIN)
BARE_RESET = Talk(end=RST)
MUTE = Talk(canary=b"")


@pytest.mark.parametrize(
    ("passes", "conforming", "violating"),
    [
        ("ACC", OK, BAD),
        ("ACC", Talk(shown(close=True), end=FIN), BARE),
        ("ACC", OK, MUTE),
        ("ACC", OK, Talk(shown(), canary=b"")),  # the next request is not answered
        ("ACC", OK, Talk(shown(), canary=OTHER)),
        ("ACC", OK, Talk(shown(), shown(), canary=OWN)),  # one answer too many
        ("ACC", OK, Talk(shown(), b"junk", end=FIN)),
        ("ACC", OK, Talk(shown("/other"), canary=OWN)),
        ("ACC", OK, Talk(shown(method="POST"), canary=OWN)),
        ("ACC", OK, Talk(shown(content=b"x"), canary=OWN)),
        ("ACC", OK, Talk(answer(200, b"Hello World!"), canary=OWN)),  # not the mirror
        ("ACC", OK, Talk(shown(), canary=shown("/mirror"))),  # the canary was not understood
        ("ACC*2", Talk(shown(), shown(), canary=OWN, answers=2), OK),
        ("PARSED", Talk(answer(405), canary=OWN), BAD),
        ("PARSED", OK, Talk(answer(414, close=True), end=FIN)),
        ("PARSED", Talk(answer(501), canary=OWN), BARE),
        ("R400", BAD, Talk(answer(404, close=True), end=FIN)),
        ("R400", BAD_OPEN, Talk(answer(400), canary=b"")),
        ("R400", BAD, BARE),
        ("R400", BAD, Talk(shown(), answer(400, close=True), end=FIN)),  # 200, then 400
        ("R400", BAD, Talk(answer(400), shown(), end=FIN)),  # 400, then 200
        ("R400C", BAD, BAD_OPEN),
        ("R400C", Talk(answer(400), end=RST), Talk(answer(400, close=True))),  # said, not done
        ("R400C", BAD, Talk(answer(400, close=True), end=FIN, late_us=5_000_000)),
        ("REJ", BAD, OK),
        ("REJ", BARE, MUTE),
        ("REJ", BARE_RESET, Talk(b"HTTP/1.1 400 B", end=FIN)),  # cut short
        ("REJ", Talk(answer(505, close=True), end=FIN), Talk(answer(503, close=True), end=FIN)),
        ("REJ", Talk(answer(501), canary=OWN), Talk(b"Hello World!", end=FIN)),  # as HTTP/0.9
        ("REJ", BAD_OPEN, Talk(answer(400), canary=OTHER)),  # out of sync
        ("REJ; close", BARE, BAD_OPEN),
        ("REJ301", Talk(answer(301, b"", "Location: /mirror"), canary=OWN),
         Talk(answer(301, b"", "Location: /elsewhere"), canary=OWN)),
        ("REJ301", Talk(answer(308, b"", "Location: http://a:1/mirror"), canary=OWN),
         Talk(answer(302, b"", "Location: /mirror"), canary=OWN)),
        ("REJ301", Talk(answer(301, b"", "Location: /%01"), canary=OWN,
                        send=r"GET /\x01 HTTP/1.1\r\nHost: {h}\r\n\r\n"),
         Talk(answer(301, b"", "Location: /\x01"), canary=OWN,
              send=r"GET /\x01 HTTP/1.1\r\nHost: {h}\r\n\r\n")),
        ("EITHER", OK, MUTE),
        ("EITHER", BARE, Talk(answer(302), canary=OWN)),
        ("WAIT", MUTE, OK),
        ("WAIT", Talk(canary=OTHER), BARE),
        ("WAIT", Talk(canary=OTHER), Talk(canary=OWN)),  # the canary was no part of the message
        # What an answer shows as taken in is the canary's bytes, or the answer was only late.
        ("WAIT", Talk(canary=shown(content=b"hel" + CANARY)), Talk(canary=shown(content=b"hel"))),
        ("WAIT", Talk(canary=shown(content=b"helGET ")), Talk(canary=shown())),
        ("WAIT", Talk(canary=shown(fields=((b"X", b"a" + CANARY),))), Talk(canary=shown("/x"))),
        ("CLOSE", BARE, BAD),
        ("ONE", Talk(answer(500), canary=OWN), BARE),
        ("ONE; close", BAD, OK),
        ("NO101", OK, Talk(answer(101))),
        ("NO101", BARE, MUTE),
        ("413", Talk(answer(413, close=True), end=FIN), BAD),
        ("4xx", BAD, OK),
        ("405,501", Talk(answer(501), canary=OWN), BAD),
        ("ACC > REJ; close", Talk(shown(), answer(400, close=True), end=FIN, answers=2), OK),
        ("ACC > REJ; close", Talk(shown(), end=FIN, answers=2),
         Talk(shown(), answer(400), canary=OWN, answers=2)),
        ("ACC; fin", Talk(shown(close=True), end=FIN), Talk(shown(close=True), end=RST)),
        ("ACC; open", OK, Talk(shown(close=True), end=FIN)),
        ("ONE; sync", Talk(shown(), end=FIN), Talk(shown(), canary=OTHER)),
        ("ACC; loose", Talk(shown(), canary=OTHER), BAD),
        ("ACC; content hello", Talk(shown(content=b"hello", method="POST"), canary=OWN, send=POST),
         Talk(shown(content=b"hell", method="POST"), canary=OWN, send=POST)),
        ("ACC; content hello",
         Talk(answer(200, b"hello"), canary=OWN, send=POST, facts=BODY),
         Talk(answer(200, b""), canary=OWN, send=POST, facts=BODY)),
        ("ACC; empty", OK, Talk(shown(content=b"x"), canary=OWN)),
        ("ACC; field X-A = a b",
         Talk(shown(fields=((b"x-a", b"a b"),)), canary=OWN),
         Talk(shown(fields=((b"x-a", b"a"),)), canary=OWN)),
        ("ACC; field X-A = 1, 2",
         Talk(shown(fields=((b"x-a", b"1"), (b"X-A", b"2"))), canary=OWN),
         Talk(shown(fields=((b"x-a", b"2"), (b"X-A", b"1"))), canary=OWN)),
        ("ACC; field X-A ~ a +b",
         Talk(shown(fields=((b"x-a", b"a  b"),)), canary=OWN),
         Talk(shown(fields=((b"x-a", b"ab"),)), canary=OWN)),
        ("ACC; field? X-A = a",
         Talk(shown(fields=((b"x-a", b"a"),)), canary=OWN),
         Talk(shown(fields=((b"x-a", b"b"),)), canary=OWN)),
        ("400; beyond 4 5", BAD, OK),
        ("ACC; spoiled", Talk(shown(), canary=answer(400)), OK),
        ("ACC; spoiled", Talk(shown(), canary=answer(501)), Talk(shown(), canary=answer(404))),
        ("ACC; spoiled", Talk(shown(), canary=b"", end=FIN), Talk(shown(), canary=b"")),
        ("ACC; method? GET", OK, Talk(shown(method="PUT"), canary=OWN)),
        ("ACC; target? /mirror", OK, Talk(shown("/other"), canary=OWN)),
        ("ACC; field X-A", Talk(shown(fields=((b"x-a", b""),)), canary=OWN), OK),
        ("ACC; no field X-A", OK, Talk(shown(fields=((b"x-a", b""),)), canary=OWN)),
        ("ACC; trailer X-T = v", Talk(shown(trailers=((b"X-T", b"v"),)), canary=OWN), OK),
        ("ACC; no trailer X-T", OK, Talk(shown(trailers=((b"X-T", b"v"),)), canary=OWN)),
        ("ACC; authority a:1", OK, Talk(shown(authority="b"), canary=OWN)),
        ("ACC; any target", Talk(shown("/other"), canary=OWN), BAD),
        ("ACC; any method; method PUT", Talk(shown(method="PUT"), canary=OWN), OK),
        ("ACC; no target /mirror; any target", Talk(shown("/m"), canary=OWN), OK),
        ("ACC; version HTTP/1.1", OK, BAD),
        ("ONE; status 2xx,405", OK, BAD),
        ("ONE; has Allow", Talk(answer(405, b"", "Allow: GET"), canary=OWN), OK),
        ("ONE; has Allow = GET", Talk(answer(405, b"", "Allow: GET"), canary=OWN),
         Talk(answer(405, b"", "Allow: PUT"), canary=OWN)),
        ("ONE; lacks X-Inj", OK, Talk(answer(200, b"", "X-Inj: y"), canary=OWN)),
        ("ONE; nobody", Talk(answer(404), canary=OWN), Talk(answer(404, b"x"), canary=OWN)),
        ("ONE; body ~ sec.et", Talk(answer(200, b"a secret"), canary=OWN), OK),
        ("ONE; body lacks secret", OK, Talk(answer(200, b"a secret"), canary=OWN)),
        ("ONE; says close", BAD, OK),
        ("ONE; keeps", OK, BAD),
        ("ONE; with 100", Talk(b"HTTP/1.1 100 C\r\n\r\n", shown(), canary=OWN), OK),
        ("ONE; no 100", OK, Talk(b"HTTP/1.1 100 C\r\n\r\n", shown(), canary=OWN)),
        ("ONE; no status 400,417", OK, BAD),
        ("ACC; decoded hello",
         Talk(answer(200, b"hello"), canary=OWN, send=POST, facts=BODY),
         Talk(answer(200, b"\x1f\x8b"), canary=OWN, send=POST, facts=BODY)),
        ("ACC; not before 0 > ACC", Talk(shown(), shown(), canary=OWN, answers=2), OK),
        ("ACC", Talk(shown("http://a:1/mirror"), canary=OWN, send=CAPITALS),
         Talk(shown("http://A:1/mirror"), canary=OWN, send=CAPITALS)),
    ],
)  # fmt: skip
def test_each_word_has_one_who_conforms_and_one_who_does_not(
    passes: str, conforming: Talk, violating: Talk
) -> None:
    assert conforming.word(passes) is Word.PASS
    assert violating.word(passes) is Word.FAIL


def test_what_is_also_allowed_is_a_warning_and_never_a_pass() -> None:
    assert OK.word("REJ", allow=("ACC",)) is Word.WARN
    assert BAD.word("REJ", allow=("ACC",)) is Word.PASS
    assert MUTE.word("REJ", allow=("ACC",)) is Word.FAIL


def test_500_and_a_close_refuse_but_not_where_the_clause_names_400() -> None:
    failed = Talk(answer(500, close=True), end=FIN)
    assert failed.word("REJ") is Word.WARN
    assert failed.word("REJ; close") is Word.WARN
    assert failed.word("R400C") is Word.FAIL
    assert failed.word("ACC") is Word.FAIL
    assert Talk(answer(500), canary=OWN).word("REJ") is Word.FAIL  # it goes on
    assert Talk(shown(), answer(500, close=True), end=FIN).word("REJ") is Word.FAIL


def test_what_follows_may_be_left_unanswered_but_not_be_read_as_another_request() -> None:
    assert Talk(shown(), canary=b"").word("ONE; quiet") is Word.PASS
    assert Talk(shown(), canary=OTHER).word("ONE; quiet") is Word.FAIL
    assert Talk(shown(), canary=b"").word("ONE; sync") is Word.FAIL


def test_a_place_that_its_application_does_not_find_by_absolute_form_proves_nothing() -> None:
    elsewhere = Talk(answer(200, b"Hello World!"), canary=OWN, send=CAPITALS)
    assert elsewhere.word("ACC") is Word.NOT_APPLICABLE
    assert Talk(answer(404), canary=OWN, send=CAPITALS).word("ACC") is Word.FAIL
    assert Talk(answer(200, b"Hello World!"), canary=OWN).word("ACC") is Word.FAIL


def test_a_close_that_was_not_announced_makes_an_acceptance_a_warning() -> None:
    assert Talk(shown(), end=FIN).word("ACC") is Word.WARN
    assert Talk(shown(), canary=b"", end=RST).word("ACC") is Word.WARN
    assert Talk(shown(), end=FIN).word("ACC; close") is Word.PASS


def test_a_1_0_request_announces_its_close() -> None:
    send = r"GET {p} HTTP/1.0\r\nHost: {h}\r\n\r\n"
    assert Talk(shown(), end=FIN, send=send).word("ACC") is Word.PASS


def test_a_close_that_was_announced_before_all_was_sent_is_no_fault() -> None:
    """A server that closes after each answer cannot be asked what takes two on one connection."""
    last = shown(close=True)
    ended: dict[str, Any] = {"end": FIN, "unsent": (GET,), "answers": 2}
    told = Talk(last, **ended).verdict("ACC*2")
    assert told.word is Word.NOT_APPLICABLE
    assert "the server closes, as it announces, before the next request is sent" in told.actual
    assert (
        Talk(answer(400, close=True), **ended).word("ACC*2") is Word.FAIL
    )  # what it gave is wrong
    assert Talk(shown(), **ended).word("ACC*2") is Word.FAIL  # not announced
    assert Talk(last, **ended | {"end": End.OPEN}).word("ACC*2") is Word.FAIL  # not done
    assert Talk(last, end=FIN, answers=2, send=GET + GET).word("ACC*2") is Word.FAIL  # all was sent
    assert Talk(**ended).word("ACC*2") is Word.FAIL  # no answer at all


@pytest.mark.parametrize("passes", ["ACC; field X-A = a", "ACC; authority a:1", "ACC; target /x"])
def test_what_only_the_mirror_proves_is_not_applicable_without_it(passes: str) -> None:
    made = Talk(answer(200, b"Hello World!"), canary=OWN, facts=HELLO)
    assert made.word(passes) is Word.NOT_APPLICABLE
    assert made.word("REJ", passes) is Word.NOT_APPLICABLE
    assert made.word("REJ") is Word.FAIL
    assert Talk(answer(400, close=True), end=FIN, facts=HELLO).word(passes) is Word.FAIL


def test_a_field_that_is_asked_of_the_mirror_only_is_not_asked_without_it() -> None:
    made = Talk(answer(200, b"Hello World!"), canary=OWN, facts=HELLO)
    assert made.word("ACC; field? X-A = a; method? GET; target? /mirror") is Word.PASS


def test_a_limit_that_is_not_exceeded_excuses_nothing() -> None:
    assert BAD.word("400; beyond 5 5") is Word.FAIL


def test_waiting_for_more_than_the_server_takes_is_silence() -> None:
    assert MUTE.word("WAIT; no beyond 5 5") is Word.PASS
    assert MUTE.word("WAIT; no beyond 4 5") is Word.FAIL


def test_authority_that_the_mirror_does_not_say_is_not_applicable() -> None:
    made = Talk(shown(authority=None), canary=OWN)
    assert made.word("ACC; authority a:1") is Word.NOT_APPLICABLE
    assert made.word("ACC; authority? a:1") is Word.PASS
    assert Talk(shown(authority="b"), canary=OWN).word("ACC; authority? a:1") is Word.FAIL


@pytest.mark.parametrize(
    ("leaked", "word"),
    [
        ({"fields": ((b"Host", b"a:1"), (b"x-a", b"1"))}, Word.FAIL),  # the case sent it
        ({"fields": ((b"Host", b"a:1"), (b"X-Added", b"1"))}, Word.PASS),  # the server's own
        ({"fields": ((b"Host", b"a:1"), (b"Content-Length", b"5"))}, Word.FAIL),
        ({"fields": ((b"Host", b"a:1"), (b"content-length", b"0"))}, Word.PASS),  # added
        ({"content": b"hello"}, Word.FAIL),
    ],
)
def test_a_canary_understood_with_what_only_the_case_sent_is_out_of_sync(
    leaked: dict[str, Any], word: Word
) -> None:
    send = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello"
    understood = shown(method="POST", content=b"hello")
    made = Talk(understood, canary=shown("/mirror?canary-c", **leaked), send=send)
    assert made.word("ACC") is word


def test_a_canary_in_sync_proves_the_framing_where_content_is_not_shown() -> None:
    made = Talk(answer(200), canary=OWN, send=POST, facts=HELLO)
    assert made.word("ACC; content hello") is Word.PASS


@pytest.mark.parametrize(
    ("second", "end", "word"),
    [
        (answer(400, close=True), FIN, Word.PASS),  # the chunk was read as a request
        (b"", FIN, Word.NOT_APPLICABLE),  # a close alone shows nothing of the framing
        (answer(200), End.OPEN, Word.FAIL),
        (b"", End.OPEN, Word.FAIL),  # the chunk was taken for content
    ],
)
def test_a_refusal_of_what_is_left_over_proves_the_framing_where_content_is_not_shown(
    second: bytes, end: End, word: Word
) -> None:
    """HN-17, TE-54 to 57: the content is empty if what comes after it is read as a request."""
    canary = OWN if end is End.OPEN else None
    made = Talk(answer(200), second, canary=canary, end=end, facts=HELLO, send=FOLDED, answers=2)
    assert made.word("ACC; empty > REJ") is word


def test_decoding_is_not_proven_by_a_canary() -> None:
    """TE-11, TE-12: a server that drops the coded bytes is in sync, too."""
    made = Talk(answer(200), canary=OWN, send=POST, facts=HELLO)
    assert made.word("501", "ACC; decoded hello") is Word.NOT_APPLICABLE


def test_an_answer_that_more_bytes_drew_is_that_of_a_server_that_waited() -> None:
    """CHK-67, TRL-21, EOL-15."""
    send = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n"
    rule: dict[str, Any] = {"canary": "none", "complete": r"\r\n\r\n", "timeline": True}
    case = next(case_builder.cases("c", Rule(sends=(send,), **rule), MIRROR))
    sent = [step.data for step in case.steps if step.data]
    taken = shown(method="POST")
    for at_once, later, word in (
        (b"", taken, Word.WARN),
        (b"", answer(400, close=True), Word.WARN),
        (taken, b"", Word.PASS),
    ):
        writes = [sent[0]] if at_once else sent
        records = EVENT_RECORD.pack(1, 10, len(sent[0]))
        records += EVENT_RECORD.pack(2, 20, len(at_once)) if at_once else b""
        records += EVENT_RECORD.pack(1, 2_000_000, 4) if len(writes) > 1 else b""
        records += EVENT_RECORD.pack(2, 2_000_100, len(later)) if later else b""
        octets = b"".join(writes)
        exchange = Exchange(
            "c", "c", octets, at_once + later, Outcome.ANSWERED, End.OPEN, 20, 3_000_000,
            len(octets), timeline=records,
        )  # fmt: skip
        for passes in (("EITHER",), ("REJ", "ACC")):
            expected = expectation.expectation(passes, ("WAIT",), values={})
            planned = catalogue.Planned(case, expected, Level.MAY)
            assert judge.Judge().judge(planned, exchange).word is word


@pytest.mark.parametrize(("head_s", "word"), [(None, Word.NOT_APPLICABLE), (3.0, Word.FAIL)])
def test_silence_fails_only_past_a_timeout_that_is_declared(
    head_s: float | None, word: Word
) -> None:
    """LEAD-10: a refusal at once is judged without one."""
    facts = msgspec.structs.replace(HELLO, timeouts={"head_s": head_s})
    passes = ("CLOSE", "4xx", "WAIT; undeclared {timeout.head_s}")
    assert Talk(facts=facts, canary=None).word(*passes) is word
    assert Talk(answer(400, close=True), end=FIN, facts=facts).word(*passes) is Word.PASS
    assert Talk(end=RST, facts=facts).word(*passes) is Word.PASS
    assert Talk(answer(200), canary=OWN, facts=facts).word(*passes) is Word.FAIL


def test_a_place_that_answers_unread_is_no_failure_of_the_framing() -> None:
    made = Talk(answer(200), canary=b"", send=POST, facts=HELLO)
    assert made.word("REJ; close") is Word.NOT_APPLICABLE
    wrong = Talk(answer(200), canary=OTHER, send=POST, facts=HELLO)
    assert wrong.word("REJ; close") is Word.FAIL


def test_the_canary_after_bytes_of_the_case_is_another_request() -> None:
    rule = Rule(sends=(POST, "hello{canary}"), canary="joined", timeline=True, answers=2)
    (case,) = case_builder.cases("c", rule, MIRROR)
    for method, word in (("GET", Word.FAIL), ("helloGET", Word.PASS)):
        last = shown("/mirror?canary-c", method=method)
        received = shown(method="POST") + last
        exchange = Exchange(
            "c", "c", case.sent, received, Outcome.ANSWERED, End.OPEN, 20, 300_000, len(case.sent)
        )
        passes = ["ACC > ACC; method helloGET; any target; loose"]
        expected = expectation.expectation(
            passes, values=placeholder_values.values(rule, MIRROR, "c")
        )
        planned = catalogue.Planned(case, expected, Level.MUST)
        assert judge.Judge().judge(planned, exchange).word is word


def test_a_complete_message_is_answered() -> None:
    """Silence fits ``WAIT`` until the bytes that complete the message are out, and no longer."""
    rule = Rule(sends=("GET",), complete="x", canary="none", timeline=True)
    (case,) = case_builder.cases("c", rule, MIRROR)
    expected = expectation.expectation(["WAIT"], values={})
    planned = catalogue.Planned(case, expected, Level.MUST)
    writes = EVENT_RECORD.pack(1, 10, 3) + EVENT_RECORD.pack(1, 1_300_000, 1)
    for received, word in ((b"", Word.FAIL), (answer(400), Word.PASS)):
        came = EVENT_RECORD.pack(2, 1_400_000, len(received)) if received else b""
        outcome = Outcome.ANSWERED if received else Outcome.HUNG
        exchange = Exchange(
            "c", "c", b"GETx", received, outcome, End.OPEN, 20, 300_000, 4, timeline=writes + came
        )
        assert judge.Judge().judge(planned, exchange).word is word


def test_lost_packets_and_refused_connections_prove_nothing() -> None:
    silent = MUTE.exchange()
    for change in ({"machine_dropped": True}, {"outcome": Outcome.REFUSED}):
        exchange = msgspec.structs.replace(silent, **change)
        sight = observation.sight(MUTE.case, exchange)
        expected = expectation.expectation(["REJ"], values={})
        assert matching.judge(MUTE.case, exchange, sight, expected).word is Word.VOID


def test_a_failure_that_is_only_a_close_is_told_apart() -> None:
    expected = expectation.expectation(["R400"], values={})
    for made, only in ((BARE, True), (BARE_RESET, True), (OK, False), (MUTE, False)):
        sight = observation.sight(made.case, made.exchange())
        found = matching.judge(made.case, made.exchange(), sight, expected)
        assert (found.word, found.closed_unanswered) == (Word.FAIL, only)


def test_hardened_takes_its_own_words() -> None:
    expected = expectation.expectation(["ACC"], ["REJ"], hardened=["R400C"], values={})
    sight = observation.sight(OK.case, OK.exchange())
    assert matching.judge(OK.case, OK.exchange(), sight, expected).word is Word.PASS
    hard = matching.judge(OK.case, OK.exchange(), sight, expected, hardened=True)
    assert hard.word is Word.FAIL


def test_a_hang_is_never_a_pass_but_where_waiting_is_asked() -> None:
    for word in sorted(expectation.WORDS - {"WAIT"}):
        assert MUTE.word(word) is Word.FAIL


@pytest.mark.parametrize(
    ("before", "word"),
    [
        (b"HTTP/1.1 100 C\r\n\r\n", Word.PASS),
        (b"", Word.FAIL),
        (b"HTTP/1.1 103 H\r\n\r\n", Word.NOT_APPLICABLE),  # the content went out for that
    ],
)
def test_only_a_100_shows_that_content_was_not_waited_for(before: bytes, word: Word) -> None:
    head = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    rule = Rule(sends=(head, "hello"), canary="none")
    case = next(case_builder.cases("c", rule, BODY))
    first, final = case.steps[0].data, answer(200, b"hello")
    timeline = [(1, len(first)), (2, len(before)), (1, 5), (2, len(final))]
    exchange = Exchange(
        "c", "c", case.sent, before + final, Outcome.ANSWERED, End.OPEN, 20, 300_000,
        len(case.sent), timeline=b"".join(
            EVENT_RECORD.pack(kind, 10 * at, octets)
            for at, (kind, octets) in enumerate(timeline) if octets
        ),
    )  # fmt: skip
    expected = expectation.expectation(["ONE; prompt; loose"], values={})
    sight = observation.sight(case, exchange)
    assert matching.judge(case, exchange, sight, expected).word is word


def test_other_interim_answers_are_no_100() -> None:
    hints, go_on = b"HTTP/1.1 103 H\r\n\r\n", b"HTTP/1.1 100 C\r\n\r\n"
    for before in (hints + go_on, go_on + hints):
        made = Talk(before + shown(), canary=OWN)
        assert made.word("ONE; with one 100") is Word.PASS
        assert made.word("ONE; no 100") is Word.FAIL
    assert Talk(hints + shown(), canary=OWN).word("ONE; no 100") is Word.PASS
    assert Talk(hints + shown(), canary=OWN).word("ONE; with 100") is Word.FAIL


@pytest.mark.parametrize(
    ("send", "end", "word"),
    [
        (r"HEAD * HTTP/1.1\r\nHost: {h}\r\n\r\n", FIN, Word.PASS),
        (r"HEAD * HTTP/1.1\r\nHost: {h}\r\n\r\n", End.OPEN, Word.FAIL),
        (r"HEAD {p} HTTP/1.1\r\nHost: {h}\r\n\r\n", FIN, Word.FAIL),
    ],
)
def test_a_malformed_head_that_is_refused_with_content_is_judged_by_the_head(
    send: str, end: End, word: Word
) -> None:
    refused = Talk(answer(400, b"bad", close=True), end=end, send=send)
    assert refused.word("REJ") is word
    assert Talk(answer(200, b"bad", close=True), end=end, send=send).word("REJ") is Word.FAIL


def test_bytes_that_are_no_response_fit_nothing() -> None:
    for octets in (b"\x00\x01", b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\n\n"):
        for word in sorted(expectation.WORDS):
            assert Talk(octets, end=FIN).word(word) is Word.FAIL


@pytest.mark.parametrize(
    ("talk", "passes", "told"),
    [
        (OK, "ACC", "200; the next request gets 200"),
        (BAD_OPEN, "REJ", "400; the next request gets 200"),
        (Talk(answer(200), canary=OTHER), "ACC", "200; the next request wrongly gets 400"),
        (Talk(canary=OTHER), "WAIT", "no answer; the next request wrongly gets 400"),
    ],
)
def test_the_answer_to_the_canary_is_not_told_as_one_of_the_case(
    talk: Talk, passes: str, told: str
) -> None:
    assert talk.verdict(passes).actual.partition(" (")[0] == told


@pytest.mark.parametrize(
    ("answers", "facts", "passes", "told"),
    [
        ((shown(), OWN), MIRROR, "ACC", "200; the next request gets 200"),
        ((answer(200), answer(200)), HELLO, "ACC", "200; the next request gets 200"),
        ((answer(400), answer(200)), HELLO, "REJ", "400; the next request gets 200"),
        ((answer(200), answer(400)), HELLO, "ACC", "200; the next request wrongly gets 400"),
        ((answer(400, close=True),), MIRROR, "REJ", "400; closed"),
    ],
)
def test_a_canary_that_came_with_the_case_is_told_apart_from_it(
    answers: tuple[bytes, ...], facts: Facts, passes: str, told: str
) -> None:
    end = FIN if told.endswith("closed") else End.OPEN
    rule = Rule(sends=(GET + "{canary}",), canary="joined", timeline=True)
    talk = Talk(*answers, facts=facts, end=end)
    talk.rule, talk.case = rule, next(case_builder.cases("c", rule, facts))
    verdict = talk.verdict(passes)
    assert verdict.actual.partition(" (")[0] == told
    assert (verdict.word is Word.PASS) is ("wrongly" not in told)
