"""The generators: exact counts, the published order, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from httpmark.harness.catalogue import generators, loading
from httpmark.harness.http import grammar
from httpmark.harness.model.cases import Case, Facts, Level, Op

PUBLISHED = {
    "path_byte": 175,
    "query_byte": 175,
    "field_name_byte": 178,
    "field_value_byte": 30,
    "path_pct_pair": 61692,
    "query_pct_pair": 61692,
}
KNOWN = loading.load()


def cases(family: str) -> Iterator[Case]:
    return KNOWN.cases(family, Facts(host="h"))


@pytest.mark.parametrize(("family", "count"), PUBLISHED.items())
def test_the_published_families_have_exactly_their_sizes(family: str, count: int) -> None:
    made = list(cases(family))
    assert len(made) == count
    assert len({case.id for case in made}) == count
    assert len({case.sent for case in made}) == count


def test_the_published_families_are_all_there_is_to_score() -> None:
    scored = {f.id: f.count for f in KNOWN.of_suite("seed") if f.level is not Level.CTRL}
    assert scored == PUBLISHED
    assert sum(scored.values()) == 123_942


def test_octets_come_in_the_order_of_signed_char() -> None:
    first = [case.sent for case in cases("path_byte")]
    assert first[0] == b"GET /hello\x80 HTTP/1.1\r\nHost: h\r\n\r\n"
    assert first[127] == b"GET /hello\xff HTTP/1.1\r\nHost: h\r\n\r\n"
    assert first[128] == b"GET /hello\x00 HTTP/1.1\r\nHost: h\r\n\r\n"
    assert first[-1] == b"GET /hello\x7f HTTP/1.1\r\nHost: h\r\n\r\n"


def test_pairs_with_a_bad_first_octet_come_first() -> None:
    pairs = [case.sent[11:13] for case in cases("path_pct_pair")]
    good = grammar.ALPHANUMERIC
    assert all(pair[0] not in good for pair in pairs[: 194 * 256])
    assert all(pair[0] in good and pair[1] not in good for pair in pairs[194 * 256 :])


def test_each_place_is_the_one_its_family_names() -> None:
    assert next(cases("query_byte")).sent.startswith(b"GET /hello?\x80 HTTP/1.1\r\n")
    assert next(cases("query_pct_pair")).sent.startswith(b"GET /hello?%\x80\x80 HTTP/1.1\r\n")
    assert next(cases("field_name_byte")).sent.endswith(b"\r\n\x80: value\r\n\r\n")
    assert next(cases("field_value_byte")).sent.endswith(b"\r\nname: \x00\r\n\r\n")


def test_the_slug_says_the_octets() -> None:
    for case in cases("path_pct_pair"):
        _, a, b = case.id.split("-")
        assert case.sent[11:13] == bytes.fromhex(a + b)


def test_a_control_never_sends_what_a_scored_family_sends() -> None:
    bad = {case.sent for family in PUBLISHED for case in cases(family)}
    controls = [f.id for f in KNOWN.of_suite("seed") if f.level is Level.CTRL]
    good = [case.sent for family in controls for case in cases(family)]
    assert len(good) == 587
    assert bad.isdisjoint(good)


def test_counting_needs_no_cases() -> None:
    rule = generators.Rule(sends=("{pair}",), pairs_outside=grammar.ALPHANUMERIC)
    assert generators.count(rule) == 194 * 256 + 62 * 194


def test_pairs_in_one_set_and_outside_another_come_bad_first_octet_first() -> None:
    rule = generators.Rule(
        sends=("{pair}",), pairs_within=frozenset(b"AGZ"), pairs_outside=grammar.HEXDIG
    )
    made = [case.sent for case in generators.cases("x", rule, Facts(host="h"))]
    assert made == [b"GA", b"GG", b"GZ", b"ZA", b"ZG", b"ZZ", b"AG", b"AZ"]
    assert generators.count(rule) == len(made)


def test_a_class_of_two_answers_waits_for_both() -> None:
    rule = generators.Rule(
        sends=("{octet}",),
        octets=grammar.octet_set("lf + 41"),
        classes=(generators.Class(octets=grammar.LF, answers=2),),
    )
    lf, letter = generators.cases("x", rule, Facts(host="h"))
    assert [sum(step.op is Op.AWAIT for step in case.steps) for case in (lf, letter)] == [2, 1]


GET = r"GET {p} HTTP/1.1\r\nHost: {h}\r\n\r\n"


def test_turns_wait_for_each_answer_and_stop_at_a_close() -> None:
    rule = generators.Rule(sends=(GET,), turns=3)
    (case,) = generators.cases("c", rule, Facts(host="h"))
    assert [step.op for step in case.steps] == [Op.SEND, Op.AWAIT] * 3
    assert all(step.if_open for step in case.steps if step.op is Op.SEND)


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("80", 80),
        ("1.5*timeout.idle_s", 3000),
        ("2*timeout.head_s", 40_000),
        ("past timeout.idle_s", 4000),
        ("past timeout.head_s", 24_000),
        ("past timeout.idle_s|head_s", 24_000),
    ],
)
def test_a_wait_is_a_number_or_rests_on_a_declared_timeout(written: str, ms: int) -> None:
    facts = Facts(host="h", timeouts={"idle_s": 2.0, "head_s": 20.0})
    assert generators.complaint(f"watch {written}") is None
    assert generators.milliseconds(written, facts) == ms
    if "timeout" in written:
        rule = generators.Rule(steps=("send " + GET, f"watch {written}"))
        declared = "idle_s" if "idle" in written else "head_s"
        assert generators.inapplicable(rule, Facts(host="h")) == (
            f"the target declares no timeout {declared}"
        )


@pytest.mark.parametrize("written", ["soon", "timeout.idle_s", "1.5timeout.idle_s", "-1", "past 5"])
def test_other_waits_are_refused(written: str) -> None:
    assert generators.complaint(f"watch {written}") is not None


def test_a_limit_that_is_not_declared_is_never_sent_as_its_name() -> None:
    rule = generators.Rule(sends=(r"GET /{limit.request_target_bytes*a} HTTP/1.1\r\n\r\n",))
    assert generators.inapplicable(rule, Facts(host="h")) == (
        "the target declares no limit request_target_bytes"
    )
    (case,) = generators.cases("c", rule, Facts(host="h", limits={"request_target_bytes": 3}))
    assert case.sent.startswith(b"GET /aaa ")


def test_field_lines_of_the_target_go_behind_every_host_line_and_count() -> None:
    inner = r"GET /in HTTP/1.1\r\nHost: {h}\r\n\r\n"
    send = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nContent-Length: {#inner}\r\n\r\n{inner}"
    rule = generators.Rule(sends=(send,), let=(("inner", inner),), canary="after")
    (case,) = generators.cases("c", rule, Facts(host="h", header=("X-Key: 1", "X-B: 2")))
    lines = b"Host: h\r\nX-Key: 1\r\nX-B: 2\r\n"
    within = b"GET /in HTTP/1.1\r\n" + lines + b"\r\n"
    own = b"POST /hello HTTP/1.1\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(within)
    assert case.sent == own + within + case.canary
    assert lines in case.canary
    # The families that are made by one template, too.
    rule = generators.Rule(
        sends=(r"GET {p}?{octet} HTTP/1.1\r\nHost: {h}\r\n\r\n",), octets=frozenset(b"abc")
    )
    for case in generators.cases("c", rule, Facts(host="h", header=("X-Key: 1",))):
        assert case.sent.endswith(b"\r\nHost: h\r\nX-Key: 1\r\n\r\n")


def test_more_octets_than_a_message_may_have_make_a_case_inapplicable() -> None:
    rule = generators.Rule(sends=("{limit.content_bytes*a}",))
    told = generators.inapplicable(rule, Facts(host="h", limits={"content_bytes": 1 << 40}))
    assert told is not None
    assert "128 MiB" in told


def test_big_and_hello_stand_for_themselves_whatever_the_place() -> None:
    rule = generators.Rule(sends=("{hello} {big} {p}",), place="mirror")
    for capabilities, octets in (
        (("hello", "mirror"), b"/x /mirror /mirror"),
        (("hello", "mirror", "behave"), b"/x /big /mirror"),
    ):
        facts = Facts(host="h", path="/x", capabilities=capabilities)
        assert next(generators.cases("c", rule, facts)).sent == octets


def test_websocket_and_file_stand_for_their_places_where_there_are_any() -> None:
    rule = generators.Rule(sends=("{websocket} {file}",), place="hello")
    for capabilities, octets in (
        (("hello",), b"/x /x"),
        (("hello", "static", "websocket"), b"/websocket /static/ok.html"),
    ):
        (case,) = generators.cases("c", rule, Facts(host="h", path="/x", capabilities=capabilities))
        assert case.sent == octets


def test_what_is_not_known_of_planted_files_is_never_sent_as_its_name() -> None:
    rule = generators.Rule(sends=(GET.replace("{p}", "/{secret}"),))
    assert generators.inapplicable(rule, Facts(host="h")) == "the target declares no secret"
    (case,) = generators.cases("c", rule, Facts(host="h", values={"secret": "s"}))
    assert case.sent.startswith(b"GET /s ")


def test_a_drip_goes_on_for_its_time_while_the_connection_is_open() -> None:
    written = "drip b every 0.1*timeout.head_s for past timeout.head_s"
    assert generators.complaint(written) is None
    rule = generators.Rule(steps=("send " + GET, written))
    (case,) = generators.cases("c", rule, Facts(host="h", timeouts={"head_s": 5.0}))
    drops = case.steps[1:]
    assert [step.op for step in drops] == [Op.SEND, Op.WATCH] * 14  # 7 s, every 0.5 s
    assert all(step.if_open for step in drops)
    assert {step.data for step in drops[::2]} == {b"b"}
    assert sum(step.wait_ms for step in drops) == 7000
    assert generators.complaint("drip b every 5") is not None


def test_waits_grow_with_a_slow_target_and_never_shrink() -> None:
    rule = generators.Rule(sends=(r"GET {p} HTTP/1.1\r\n\r\n",), canary="after")
    quick, fast, slow = (
        next(generators.cases("c", rule, Facts(host="h", slowest_ms=slowest_ms)))
        for slowest_ms in (0, 30, 1500)
    )
    assert fast == quick
    assert slow.sent == quick.sent
    awaited = [step.wait_ms for step in slow.steps if step.op is Op.AWAIT]
    assert awaited == [6000, 6000]
    assert slow.close_ms == 6000
    assert slow.deadline_ms > sum(awaited)
