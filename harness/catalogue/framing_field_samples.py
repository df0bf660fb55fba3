"""The rules of field lines, and of the fields that frame and address a request."""

from __future__ import annotations

import re

from httpmark.harness.catalogue.byte_deviations import Part
from httpmark.harness.catalogue.grammar_rules import (
    FIELD,
    HOST_BYTES,
    LINE_END,
    TEXT,
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

# RFC 3986 3.2.2 has reg-name empty, too; readers differ about a port after it.
_HOST = field_line(
    b"host",
    rb"(?:" + grammar.IP_LITERAL.pattern + rb"|" + grammar.REG_NAME.pattern + rb"|)(?::[0-9]*)?",
)
_H16 = frozenset(grammar.HEXDIG)


def _groups(*groups: bytes) -> tuple[Part, ...]:
    """Groups of an IPv6 address with their colons."""
    parts: list[Part] = []
    for number, group in enumerate(groups):
        if number:
            parts.append(fixed(f"colon {number}", b":"))
        parts.append(many(f"group {number + 1}", group, _H16))
    return tuple(parts)


RULES = [
    GrammarRule(
        name="field-line",
        clause="RFC 9112 5",
        where=Where.FIELD_LINE,
        valid=re.compile(grammar.FIELD_LINE.pattern + b"\r\n", re.DOTALL),
        alternatives={
            "no whitespace": re.compile(TOKEN + rb":[^\s][^\r\n]*\r\n"),
            "space": re.compile(TOKEN + rb": [^\s][^\r\n]*\r\n"),
            "HTAB": re.compile(TOKEN + rb":\t[^\s][^\r\n]*\r\n"),
            "much whitespace": re.compile(TOKEN + rb":[ \t]{2,}[^\s][^\r\n]*\r\n"),
            "trailing whitespace": re.compile(TOKEN + rb":[ \t]*[^\s][^\r\n]*[ \t]\r\n"),
            "empty value": re.compile(TOKEN + rb":\r\n"),
            "only whitespace": re.compile(TOKEN + rb":[ \t]+\r\n"),
            "whitespace inside": re.compile(TOKEN + rb":[ \t]*[^\s]+[ \t]+[^\s][^\r\n]*\r\n"),
            "obs-text": re.compile(TOKEN + rb":[^\r\n]*[\x80-\xff][^\r\n]*\r\n"),
            "name of one byte": re.compile(rb"[A-Za-z]:[^\r\n]*\r\n"),
            "name with marks": re.compile(rb"(?=[^:]*[!#$%&'*+.^_`|~])[^:\r\n]+:[^\r\n]*\r\n"),
        },
        samples={
            "field-line": FIELD,
            "one byte": (
                many("short name", b"X", grammar.TCHAR),
                given(b":"),
                given(b"", b"[ \t]*"),
                many("short value", b"y", TEXT),
                given(b"\r\n"),
            ),
        },
    ),
    GrammarRule(
        name="end of the fields",
        clause="RFC 9112 2.1",
        where=Where.FIELD_LINE,
        valid=re.compile(rb"\r\n|" + grammar.FIELD_LINE.pattern + rb"\r\n(?:\r\n)?", re.DOTALL),
        alternatives={"empty line": re.compile(TOKEN + rb":[^\r\n]*\r\n\r\n")},
        samples={
            "empty line": (
                given(b"A: b\r\n", TOKEN + rb":[^\r\n]*\r\n"),
                fixed("line end", b"\r\n"),
            )
        },
    ),
    GrammarRule(
        name="Host",
        clause="RFC 9110 7.2",
        where=Where.FIELD_LINE,
        valid=_HOST,
        alternatives=forms(
            b"host",
            reg_name=rb"(?=[^:]*[a-zA-Z])[a-zA-Z0-9.-]+(?::[0-9]*)?",
            reg_name_of_one_byte=rb"[a-zA-Z]",
            pct_encoded=rb"[^:\[]*%[^:]*(?::[0-9]*)?",
            sub_delims=rb"(?=[^:]*[!$&'()*+,;=_~])[^:\[]+(?::[0-9]*)?",
            IPv4=grammar.IPV4.pattern + rb"(?::[0-9]+)?",
            no_port=rb"[^:\[]+",
            port_of_one_digit=rb"[^:\[]+:[0-9]",
            port_of_two_digits=rb"[^:\[]+:[0-9]{2}",
            port_of_three_digits=rb"[^:\[]+:[0-9]{3}",
            port_of_four_digits=rb"[^:\[]+:[0-9]{4}",
            port_of_five_digits=rb"[^:\[]+:[0-9]{5}",
            port_65535=rb"[^ ]+:65535",
            empty_port=rb"[^:\[]+:",
            empty=rb"",
        ),
        samples={
            "host": (
                field_name(b"Host"),
                many("host", b"abc", HOST_BYTES),
                given(b"", rb"(?::[0-9]*)?"),
                LINE_END,
            ),
            "port": (
                field_name(b"Host"),
                given(b"abc", rb"[^:\[\s]+"),
                fixed("colon", b":"),
                many("port", b"808", grammar.DIGIT),
                LINE_END,
            ),
            "one byte": (
                field_name(b"Host"),
                many("short host", b"a", grammar.UNRESERVED),
                given(b":80", rb"(?::[0-9]+)?"),
                LINE_END,
            ),
            "pct-encoded": (
                field_name(b"Host"),
                given(b"a", rb"[a-z0-9.-]*"),
                fixed("pct-encoded percent", b"%"),
                many("pct-encoded digit 1", b"4", grammar.HEXDIG),
                many("pct-encoded digit 2", b"1", grammar.HEXDIG),
                given(b"b", rb"[a-z0-9.-]*(?::[0-9]*)?"),
                LINE_END,
            ),
        },
    ),
    GrammarRule(
        name="IPv6address",
        clause="RFC 3986 3.2.2",
        where=Where.FIELD_LINE,
        valid=_HOST,
        alternatives=forms(
            b"host",
            eight_groups=rb"\[[0-9a-fA-F]+(?::[0-9a-fA-F]+){7}\](?::[0-9]*)?",
            elided_first=rb"\[::[0-9a-fA-F:]+\](?::[0-9]*)?",
            elided_inside=rb"\[[0-9a-fA-F:]*[0-9a-fA-F]::[0-9a-fA-F][0-9a-fA-F:]*\](?::[0-9]*)?",
            elided_last=rb"\[[0-9a-fA-F:]+::\](?::[0-9]*)?",
            all_elided=rb"\[::\](?::[0-9]*)?",
            IPv4_at_the_end=rb"\[[0-9a-fA-F:]*:[0-9]+\.[0-9.]+\](?::[0-9]*)?",
            no_port=rb"\[[0-9a-fA-F:.]+\]",
            port=rb"\[[0-9a-fA-F:.]+\]:[0-9]+",
            capitals=rb"\[(?=[^\]]*[A-F])[0-9A-F:.]+\](?::[0-9]*)?",
        ),
        samples={
            "eight groups": (
                field_name(b"Host"),
                fixed("bracket", b"["),
                *_groups(b"2001", b"1", b"2", b"3", b"4", b"5", b"6", b"7"),
                fixed("last bracket", b"]"),
                given(b"", rb"(?::[0-9]*)?"),
                LINE_END,
            ),
            "elided": (
                field_name(b"Host"),
                given(b"["),
                many("elided group", b"2001", _H16),
                fixed("elision", b"::"),
                many("last group", b"1", _H16),
                given(b"]"),
                fixed("port colon", b":"),
                many("port", b"808", grammar.DIGIT),
                LINE_END,
            ),
            "IPv4 at the end": (
                field_name(b"Host"),
                given(b"[::", rb"\[[0-9a-fA-F:]*:"),
                many("number 1", b"1", grammar.DIGIT),
                fixed("dot 1", b"."),
                many("number 2", b"2", grammar.DIGIT),
                fixed("dot 2", b"."),
                many("number 3", b"3", grammar.DIGIT),
                fixed("dot 3", b"."),
                many("number 4", b"192", grammar.DIGIT),
                given(b"]", rb"\](?::[0-9]*)?"),
                LINE_END,
            ),
        },
    ),
    GrammarRule(
        name="Content-Length",
        clause="RFC 9110 8.6",
        where=Where.FIELD_LINE,
        valid=field_line(b"content-length", rb"[0-9]+"),
        alternatives=forms(
            b"content-length",
            zero=rb"0",
            one_digit=rb"[1-9]",
            several_digits=rb"[1-9][0-9]+",
            leading_zero=rb"0[0-9]+",
        ),
        samples={
            "several digits": (
                field_name(b"Content-Length"),
                many("length", b"123", grammar.DIGIT),
                LINE_END,
            ),
            "one digit": (
                field_name(b"Content-Length"),
                many("digit", b"5", grammar.DIGIT),
                LINE_END,
            ),
        },
    ),
    GrammarRule(
        name="Transfer-Encoding",
        clause="RFC 9112 6.1",
        where=Where.FIELD_LINE,
        valid=field_line(
            b"transfer-encoding", rb"(?:[ \t]*,)*[ \t]*(?i:chunked)(?:[ \t]*,[ \t]*)*"
        ),
        alternatives=forms(
            b"transfer-encoding",
            chunked=rb"(?i:chunked)",
            capitals=rb"(?=.{0,6}[A-Z])(?i:chunked)",
            empty_element_first=rb",[ \t]*(?i:chunked)",
            empty_element_last=rb"(?i:chunked)[ \t]*,",
        ),
        samples={
            "chunked": (
                field_name(b"Transfer-Encoding"),
                fixed("chunked", b"chunked", any_case=True),
                LINE_END,
            )
        },
    ),
]

_CODINGS = field_line(b"transfer-encoding", grammar.TRANSFER_CODINGS.pattern)
RULES += [
    GrammarRule(
        name="transfer-parameter",
        clause="RFC 9112 7",
        where=Where.FIELD_LINE,
        valid=_CODINGS,
        alternatives=forms(
            b"transfer-encoding",
            several_codings=rb"[a-zA-Z]+[ \t]*,[ \t]*[^;]+",
            token=TOKEN + rb"[ \t]*;[ \t]*" + TOKEN + rb"=" + TOKEN + rb"[^;]*",
            quoted_string=rb"[^;]+;[^;]+=\"[^\"\\]*\"[^;]*",
            quoted_pair=rb"[^;]+;[^;]+=\"[^\"\\]*\\.[^\"\\]*\"[^;]*",
            whitespace_around=rb"[^;]+[ \t];[ \t][^;]+",
        ),
        samples={
            "token": (
                field_name(b"Transfer-Encoding"),
                given(b"chunked", TOKEN),
                fixed("semicolon", b";"),
                many("name", b"abc", grammar.TCHAR),
                fixed("equals", b"="),
                many("token", b"xyz", grammar.TCHAR),
                LINE_END,
            ),
            "quoted-string": (
                field_name(b"Transfer-Encoding"),
                given(b"chunked;a=", TOKEN + rb";" + TOKEN + b"="),
                fixed("quote", b'"'),
                many("quoted text", b"xyz", TEXT - frozenset(b'"\\')),
                fixed("last quote", b'"'),
                LINE_END,
            ),
        },
        refused=True,
    ),
]
