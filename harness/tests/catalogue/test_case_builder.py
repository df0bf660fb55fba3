"""Cases from rules: waits, turns and what cannot be built."""

from __future__ import annotations

from httpmark.harness.catalogue import case_builder
from httpmark.harness.catalogue.family_rules import FamilyClass, Rule
from httpmark.harness.http import grammar
from httpmark.harness.model.cases import Facts, Op

GET = r"GET {p} HTTP/1.1\r\nHost: {h}\r\n\r\n"


def test_a_class_of_two_answers_waits_for_both() -> None:
    rule = Rule(
        sends=("{octet}",),
        octets=grammar.octet_set("lf + 41"),
        classes=(FamilyClass(octets=grammar.LF, answers=2),),
    )
    lf, letter = case_builder.cases("x", rule, Facts(host="h"))
    assert [sum(step.op is Op.AWAIT for step in case.steps) for case in (lf, letter)] == [2, 1]


def test_turns_wait_for_each_answer_and_stop_at_a_close() -> None:
    rule = Rule(sends=(GET,), turns=3)
    (case,) = case_builder.cases("c", rule, Facts(host="h"))
    assert [step.op for step in case.steps] == [Op.SEND, Op.AWAIT] * 3
    assert all(step.if_open for step in case.steps if step.op is Op.SEND)


def test_announced_content_goes_out_although_a_close_is_announced_and_a_request_does_not() -> None:
    """A server may read what a message announced before it closes (RFC 9112 9.6)."""
    posts = (
        r"POST {p} HTTP/1.1\r\nHost: {h}\r\nContent-Length: 5\r\n\r\n",
        r"POST {p} HTTP/1.1\r\nHost: {h}\r\ntransfer-encoding:\x0bchunked\r\n\r\n",
        r"POST {p} HTTP/1.1\r\n\tContent_Length: 5\r\nHost: {h}\r\n\r\n",
    )
    for first, conditions in (
        (GET, [(False, False), (True, False)]),
        *((post, [(False, False), (False, True)]) for post in posts),
    ):
        (case,) = case_builder.cases("c", Rule(sends=(first, "hello")), Facts(host="h"))
        sent = [step for step in case.steps if step.op is Op.SEND]
        assert [(step.if_open, step.if_connected) for step in sent] == conditions


def test_more_bytes_than_a_message_may_have_make_a_case_inapplicable() -> None:
    rule = Rule(sends=("{limit.content_bytes*a}",))
    told = case_builder.inapplicable(rule, Facts(host="h", limits={"content_bytes": 1 << 40}))
    assert told is not None
    assert "128 MiB" in told


def test_waits_grow_with_a_slow_target_and_never_shrink() -> None:
    rule = Rule(sends=(r"GET {p} HTTP/1.1\r\n\r\n",), canary="after")
    quick, fast, slow = (
        next(case_builder.cases("c", rule, Facts(host="h", slowest_ms=slowest_ms)))
        for slowest_ms in (0, 30, 1500)
    )
    assert fast == quick
    assert slow.sent == quick.sent
    awaited = [step.wait_ms for step in slow.steps if step.op is Op.AWAIT]
    assert awaited == [6000, 6000]
    assert slow.close_ms == 6000
    assert slow.deadline_ms > sum(awaited)


def test_after_an_announced_close_or_a_wait_in_vain_no_further_answer_is_waited_for() -> None:
    rule = Rule(sends=(r"{1000*GET {p} HTTP/1.1\r\n\r\n}",), answers=1000)
    (case,) = case_builder.cases("c", rule, Facts(host="h"))
    first, *others = [step for step in case.steps if step.op is Op.AWAIT]
    assert (first.if_open, first.if_prompt) == (False, False)
    assert len(others) == 999
    assert all(step.if_open and step.if_prompt for step in others)


def test_post_goes_to_the_path_that_takes_it() -> None:
    rule = Rule(sends=(r"POST {p} HTTP/1.1\r\n\r\nGET {p} HTTP/1.1\r\n\r\n",))
    for facts, path in (
        (Facts(host="h", path="/"), b"/"),
        (Facts(host="h", path="/", post_path="/form"), b"/form"),
        (Facts(host="h", path="/", post_path="/form", capabilities=("mirror",)), b"/mirror"),
    ):
        (case,) = case_builder.cases("c", rule, facts)
        assert case.sent.startswith(b"POST " + path + b" HTTP/1.1\r\n"), facts
    told = case_builder.inapplicable(rule, Facts(host="h", path="/", post_path=None))
    assert told is not None
    assert "--post-path" in told
