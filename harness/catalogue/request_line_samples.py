"""The rules of the request line: method, target and version."""

from __future__ import annotations

import re

from httpmark.harness.catalogue.grammar_rules import (
    HOST_BYTES,
    TOKEN,
    GrammarRule,
    Where,
    fixed,
    given,
    many,
)
from httpmark.harness.http import grammar

_GET = given(b"GET ", rb"[A-Z]+ ")
_TARGET = given(b"/abc", rb"[!-~]+")
_VERSION = given(b" HTTP/1.1\r\n", rb" HTTP/1\.[01]\r\n")
_LINE = re.compile(
    TOKEN + b" " + grammar.REQUEST_TARGET.pattern + b" " + grammar.HTTP_VERSION.pattern + b"\r\n"
)


def _request_line(target: bytes, method: bytes = b"[A-Z]+") -> re.Pattern[bytes]:
    return re.compile(method + b" " + target + rb" HTTP/1\.[01]\r\n")


RULES = [
    GrammarRule(
        name="method",
        clause="RFC 9112 3.1",
        where=Where.REQUEST_LINE,
        valid=_LINE,
        alternatives={
            "known": _request_line(rb"[!-~]+", b"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|TRACE)"),
            "unknown": _request_line(
                rb"[!-~]+", b"(?!(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|TRACE|CONNECT) )" + TOKEN
            ),
            "small letters": _request_line(rb"[!-~]+", b"[a-z]+"),
            "marks": _request_line(rb"[!-~]+", rb"(?=[^ ]*[^0-9A-Za-z ])[^ ]+"),
            "digits": _request_line(rb"[!-~]+", rb"[A-Z]*[0-9]+[A-Z0-9]*"),
            "one byte": _request_line(rb"[!-~]+", b"[A-Za-z]"),
        },
        samples={
            "method": (many("method", b"GET", grammar.TCHAR), given(b" "), _TARGET, _VERSION),
            "one byte": (many("short method", b"X", grammar.TCHAR), given(b" "), _TARGET, _VERSION),
        },
    ),
    GrammarRule(
        name="request-line",
        clause="RFC 9112 3",
        where=Where.REQUEST_LINE,
        valid=_LINE,
        alternatives={"request-line": _request_line(rb"[!-~]+")},
        samples={
            "request-line": (
                given(b"GET", TOKEN),
                fixed("first space", b" "),
                _TARGET,
                fixed("second space", b" "),
                given(b"HTTP/1.1", rb"HTTP/1\.[01]"),
                fixed("line end", b"\r\n"),
            ),
        },
    ),
    GrammarRule(
        name="HTTP-version",
        clause="RFC 9112 2.3",
        where=Where.REQUEST_LINE,
        valid=_LINE,
        alternatives={
            "1.1": re.compile(rb"[A-Z]+ [!-~]+ HTTP/1\.1\r\n"),
            "1.0": re.compile(rb"[A-Z]+ [!-~]+ HTTP/1\.0\r\n"),
            "a later minor version": re.compile(rb"[A-Z]+ [!-~]+ HTTP/1\.[2-9]\r\n"),
        },
        samples={
            "version": (_GET, _TARGET, given(b" "), fixed("version", b"HTTP/1.1"), given(b"\r\n")),
        },
    ),
    GrammarRule(
        name="origin-form",
        clause="RFC 9112 3.2.1",
        where=Where.REQUEST_LINE,
        valid=_LINE,
        alternatives={
            "root": _request_line(rb"/"),
            "segment": _request_line(rb"/[^/?%]+"),
            "segments": _request_line(rb"/[^/?]+(?:/[^/?]+)+"),
            "empty segment": _request_line(rb"/[^?]*//[^?]*"),
            "query": _request_line(rb"/[^?]*\?.+?"),
            "empty query": _request_line(rb"/[^?]*\?"),
            "query with ? and /": _request_line(rb"/[^?]*\?(?=[^ ]*\?)(?=[^ ]*/)[^ ]+"),
            "pct-encoded path": _request_line(rb"/[^?]*%[^?]*"),
            "pct-encoded query": _request_line(rb"/[^?]*\?.*?%[^ ]*"),
            "sub-delims": _request_line(rb"/(?=[^ ?]*[!$&'()*+,;=])[^?]+?"),
        },
        samples={
            "path": (
                _GET,
                fixed("slash", b"/"),
                many("path", b"abc", grammar.PCHAR),
                _VERSION,
            ),
            "query": (
                _GET,
                given(b"/ab", b"/" + rb"[^ ?]*"),
                fixed("question mark", b"?"),
                many("query", b"xyz", grammar.TARGET),
                _VERSION,
            ),
            "pct-encoded path": (
                _GET,
                given(b"/ab", rb"/[^ %?]*"),
                fixed("pct-encoded path percent", b"%"),
                many("pct-encoded path digit 1", b"4", grammar.HEXDIG),
                many("pct-encoded path digit 2", b"1", grammar.HEXDIG),
                given(b"c", rb"[^ %]*"),
                _VERSION,
            ),
            "pct-encoded query": (
                _GET,
                given(b"/ab?c", rb"/[^ %?]*\?[^ %]*"),
                fixed("pct-encoded query percent", b"%"),
                many("pct-encoded query digit 1", b"4", grammar.HEXDIG),
                many("pct-encoded query digit 2", b"1", grammar.HEXDIG),
                given(b"d", rb"[^ %]*"),
                _VERSION,
            ),
        },
    ),
    GrammarRule(
        name="absolute-form",
        clause="RFC 9112 3.2.2",
        where=Where.REQUEST_LINE,
        valid=_LINE,
        alternatives={
            "no path": _request_line(rb"(?i:http)://[^/?]+"),
            "path": _request_line(rb"(?i:http)://[^/?]+/[^?]*"),
            "query with path": _request_line(rb"(?i:http)://[^/?]+/[^?]*\?.*?"),
            "query without path": _request_line(rb"(?i:http)://[^/?]+\?[^ ]*"),
            "no port": _request_line(rb"(?i:http)://[^/?:\[]+(?:[/?][^ ]*)?"),
            "port": _request_line(rb"(?i:http)://[^/?:]+:[0-9]+(?:[/?][^ ]*)?"),
            "IPv6": _request_line(rb"(?i:http)://\[" + grammar.IPV6.pattern + rb"\][^ ]*"),
            "scheme in capitals": _request_line(rb"(?=[^:]*[A-Z])(?i:http)://[^ ]+"),
        },
        samples={
            "host": (
                _GET,
                fixed("scheme", b"http", any_case=True),
                fixed("colon", b":"),
                fixed("slashes", b"//"),
                many("host", b"abc", HOST_BYTES),
                given(b"/xyz", rb"(?::[0-9]*)?(?:[/?][^ ]*)?"),
                _VERSION,
            ),
            "port": (
                _GET,
                given(b"http://abc", rb"(?i:http)://[^/?: ]+"),
                fixed("port colon", b":"),
                many("port", b"808", grammar.DIGIT),
                given(b"/xyz", rb"(?:[/?][^ ]*)?"),
                _VERSION,
            ),
            "path": (
                _GET,
                given(b"http://abc", rb"(?i:http)://[^/? ]+"),
                fixed("slash", b"/"),
                many("path", b"xyz", grammar.PCHAR | frozenset(b"/")),
                _VERSION,
            ),
        },
    ),
    GrammarRule(
        name="authority-form",
        clause="RFC 9112 3.2.3",
        where=Where.REQUEST_LINE,
        valid=re.compile(b"CONNECT " + grammar.AUTHORITY_FORM.pattern + rb" HTTP/[0-9]\.[0-9]\r\n"),
        alternatives={
            "reg-name": _request_line(rb"[^\[:/]+:[0-9]+", b"CONNECT"),
            "IPv6": _request_line(rb"\[[^\]]+\]:[0-9]+", b"CONNECT"),
        },
        samples={
            "authority-form": (
                given(b"CONNECT "),
                many("host", b"abc", HOST_BYTES),
                fixed("colon", b":"),
                many("port", b"443", grammar.DIGIT),
                _VERSION,
            ),
            "one digit": (
                given(b"CONNECT "),
                many("short host", b"a", grammar.UNRESERVED),
                given(b":"),
                many("short port", b"1", grammar.DIGIT),
                _VERSION,
            ),
        },
        refused=True,
    ),
    GrammarRule(
        name="asterisk-form",
        clause="RFC 9112 3.2.4",
        where=Where.REQUEST_LINE,
        valid=re.compile(rb"OPTIONS (?:\*|/[!-~]*|http://[!-~]+) HTTP/[0-9]\.[0-9]\r\n"),
        alternatives={"*": _request_line(rb"\*", b"OPTIONS")},
        samples={"*": (given(b"OPTIONS "), fixed("asterisk", b"*"), _VERSION)},
    ),
]
