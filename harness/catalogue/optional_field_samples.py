"""The rules of fields that a server may ignore where they are not valid."""

from __future__ import annotations

from httpmark.harness.catalogue.grammar_rules import (
    LINE_END,
    TOKEN,
    GrammarRule,
    Where,
    field_line,
    field_name,
    fixed,
    forms,
    given,
    many,
)
from httpmark.harness.http import grammar

RULES = [
    GrammarRule(
        name="Connection",
        clause="RFC 9110 7.6.1, 5.6.1",
        where=Where.FIELD_LINE,
        valid=field_line(b"connection", grammar.TOKENS.pattern),
        alternatives=forms(
            b"connection",
            close=rb"(?i:close)",
            close_in_capitals=rb"(?=[^\r\n]*[A-Z])(?i:close)",
            keep_alive=rb"(?i:keep-alive)",
            several=TOKEN + rb"[ \t]*,[ \t]*" + TOKEN,
            empty_element=rb",[^\r\n]*|[^\r\n]*,[ \t]*,[^\r\n]*|[^\r\n]*,",
            other_token=rb"(?!(?i:close|keep-alive)\s)" + TOKEN,
        ),
        samples={
            "token": (field_name(b"Connection"), many("option", b"close", grammar.TCHAR), LINE_END)
        },
        ignored=True,
    ),
    GrammarRule(
        name="Expect",
        clause="RFC 9110 10.1.1",
        where=Where.FIELD_LINE,
        valid=field_line(b"expect", grammar.EXPECT.pattern),
        alternatives=forms(
            b"expect",
            one=rb"100-continue",
            capitals=rb"(?=[^\r\n]*[A-Z])(?i:100-continue)",
            other=rb"(?!(?i:100-continue))[^\r\n]+",
        ),
        samples={
            "token": (
                field_name(b"Expect"),
                many("expectation", b"100-continue", grammar.TCHAR),
                LINE_END,
            )
        },
        ignored=True,
    ),
    GrammarRule(
        name="Upgrade",
        clause="RFC 9110 7.8",
        where=Where.FIELD_LINE,
        valid=field_line(b"upgrade", grammar.UPGRADE.pattern),
        alternatives=forms(
            b"upgrade",
            websocket=rb"(?i:websocket)",
            version=TOKEN + rb"/" + TOKEN,
            several=rb"[^,]+,[^\r\n]+",
            unknown=rb"(?!(?i:websocket|h2c))" + TOKEN,
        ),
        samples={
            "protocol": (
                field_name(b"Upgrade"),
                many("protocol", b"abc", grammar.TCHAR),
                fixed("slash", b"/"),
                many("version", b"1.0", grammar.TCHAR),
                LINE_END,
            )
        },
        ignored=True,
    ),
    GrammarRule(
        name="Range",
        clause="RFC 9110 14.1.1, 14.2",
        where=Where.FIELD_LINE,
        valid=field_line(b"range", grammar.RANGE.pattern),
        alternatives=forms(
            b"range",
            first_and_last=rb"bytes=[0-9]+-[0-9]+",
            first=rb"bytes=[0-9]+-",
            suffix=rb"bytes=-[0-9]+",
            several=rb"bytes=[^,]+,[^\r\n]+",
            other_unit=rb"(?!bytes)" + TOKEN + rb"=[^\r\n]+",
        ),
        samples={
            "bytes": (
                field_name(b"Range"),
                fixed("unit", b"bytes"),
                fixed("equals", b"="),
                many("first", b"0", grammar.DIGIT),
                fixed("dash", b"-"),
                many("last", b"4", grammar.DIGIT),
                LINE_END,
            )
        },
        ignored=True,
    ),
    GrammarRule(
        name="entity-tag",
        clause="RFC 9110 8.8.3, 13.1.1, 13.1.2, 13.1.5",
        where=Where.FIELD_LINE,
        valid=field_line(b"if-(?:none-)?match", grammar.ENTITY_TAGS.pattern),
        alternatives={
            **forms(
                b"if-none-match",
                strong=rb'"[^"]*"',
                weak=rb'W/"[^"]*"',
                asterisk=rb"\*",
                several=rb"[^,]+,[^\r\n]+",
            ),
            "If-Match": field_line(b"if-match", rb"[^\r\n]+"),
            "If-Range": field_line(b"if-range", rb"[^\r\n]+"),
        },
        samples={
            "strong": (
                given(b"If-None-Match: ", rb"(?i:if-(?:none-)?match):[ \t]*"),
                fixed("quote", b'"'),
                many("tag", b"abc", frozenset(range(0x21, 0x7F)) - frozenset(b'"')),
                fixed("last quote", b'"'),
                LINE_END,
            )
        },
        ignored=True,
    ),
    GrammarRule(
        name="HTTP-date",
        clause="RFC 9110 5.6.7, 13.1.3, 13.1.4",
        where=Where.FIELD_LINE,
        valid=field_line(b"if-(?:un)?modified-since", grammar.HTTP_DATE.pattern),
        alternatives={
            **forms(
                b"if-modified-since",
                IMF_fixdate=grammar.IMF_FIXDATE.pattern,
                rfc850_date=rb"[A-Z][a-z]+day, [^\r\n]+",
                asctime_date=rb"[A-Z][a-z]{2} [A-Z][a-z]{2} [^\r\n]+",
            ),
            "If-Unmodified-Since": field_line(b"if-unmodified-since", rb"[^\r\n]+"),
        },
        samples={
            "IMF-fixdate": (
                given(b"If-Modified-Since: ", rb"(?i:if-(?:un)?modified-since):[ \t]*"),
                fixed("date", b"Sun, 06 Nov 1994 08:49:37 GMT"),
                LINE_END,
            )
        },
        ignored=True,
    ),
]
