"""Placeholders: what they stand for on a target, and what is never sent as its name."""

from __future__ import annotations

from httpmark.harness.catalogue import case_builder, undeclared
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.model.cases import Facts

GET = r"GET {p} HTTP/1.1\r\nHost: {h}\r\n\r\n"


def test_a_limit_that_is_not_declared_is_never_sent_as_its_name() -> None:
    rule = Rule(sends=(r"GET /{limit.request_target_bytes*a} HTTP/1.1\r\n\r\n",))
    assert case_builder.inapplicable(rule, Facts(host="h")) == (
        "the target declares no limit request_target_bytes: "
        "declare limits.request_target_bytes in a manifest (docs/manifest.md)"
    )
    (case,) = case_builder.cases("c", rule, Facts(host="h", limits={"request_target_bytes": 3}))
    assert case.sent.startswith(b"GET /aaa ")


def test_field_lines_of_the_target_go_after_every_host_line_and_count() -> None:
    inner = r"GET /in HTTP/1.1\r\nHost: {h}\r\n\r\n"
    send = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nContent-Length: {#inner}\r\n\r\n{inner}"
    rule = Rule(sends=(send,), let=(("inner", inner),), canary="after")
    (case,) = case_builder.cases("c", rule, Facts(host="h", header=("X-Key: 1", "X-B: 2")))
    lines = b"Host: h\r\nX-Key: 1\r\nX-B: 2\r\n"
    within = b"GET /in HTTP/1.1\r\n" + lines + b"\r\n"
    own = b"POST /hello HTTP/1.1\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(within)
    assert case.sent == own + within + case.canary
    assert lines in case.canary
    # The families that are made by one template, too.
    rule = Rule(sends=(r"GET {p}?{octet} HTTP/1.1\r\nHost: {h}\r\n\r\n",), octets=frozenset(b"abc"))
    for case in case_builder.cases("c", rule, Facts(host="h", header=("X-Key: 1",))):
        assert case.sent.endswith(b"\r\nHost: h\r\nX-Key: 1\r\n\r\n")


def test_big_and_hello_stand_for_themselves_whatever_the_place() -> None:
    rule = Rule(sends=("{hello} {big} {p}",), place="mirror")
    for capabilities, octets in (
        (("hello", "mirror"), b"/x /mirror /mirror"),
        (("hello", "mirror", "behave"), b"/x /big /mirror"),
    ):
        facts = Facts(host="h", path="/x", capabilities=capabilities)
        assert next(case_builder.cases("c", rule, facts)).sent == octets


def test_websocket_and_file_stand_for_their_places_where_there_are_any() -> None:
    rule = Rule(sends=("{websocket} {file}",), place="hello")
    for capabilities, octets in (
        (("hello",), b"/x /x"),
        (("hello", "static", "websocket"), b"/websocket /static/ok.html"),
    ):
        (case,) = case_builder.cases(
            "c", rule, Facts(host="h", path="/x", capabilities=capabilities)
        )
        assert case.sent == octets


def test_what_is_not_known_of_the_static_files_is_never_sent_as_its_name() -> None:
    rule = Rule(sends=(GET.replace("{p}", "/{secret}"),))
    why = case_builder.inapplicable(rule, Facts(host="h"))
    assert why == undeclared.value("secret")
    (case,) = case_builder.cases("c", rule, Facts(host="h", values={"secret": "s"}))
    assert case.sent.startswith(b"GET /s ")
