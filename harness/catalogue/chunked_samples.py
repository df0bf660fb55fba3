"""The rules of the chunked coding."""

from __future__ import annotations

import re

from httpmark.harness.catalogue.grammar_rules import (
    FIELD,
    TEXT,
    TOKEN,
    GrammarRule,
    Where,
    fixed,
    given,
    many,
)
from httpmark.harness.http import grammar

_CHUNK = re.compile(grammar.CHUNK_LINE.pattern + b"\r\n", re.DOTALL)
_EXTENSION = given(b"", rb"(?:;[^\r\n]*)?")
RULES = [
    GrammarRule(
        name="chunk-size",
        clause="RFC 9112 7.1",
        where=Where.CHUNK_LINE,
        valid=_CHUNK,
        alternatives={
            "one digit": re.compile(rb"[1-9](?:;[^\r\n]*)?\r\n"),
            "small letters": re.compile(rb"[0-9]*[a-f]+(?:;[^\r\n]*)?\r\n"),
            "capitals": re.compile(rb"[0-9]*[A-F]+(?:;[^\r\n]*)?\r\n"),
            "several digits": re.compile(rb"[1-9a-fA-F][0-9a-fA-F]+(?:;[^\r\n]*)?\r\n"),
            "leading zeros": re.compile(rb"0+[1-9a-fA-F][0-9a-fA-F]*(?:;[^\r\n]*)?\r\n"),
            "last chunk": re.compile(rb"0\r\n"),
            "last chunk of several zeros": re.compile(rb"00+(?:;[^\r\n]*)?\r\n"),
        },
        samples={
            "one digit": (many("size", b"5", grammar.HEXDIG), fixed("line end", b"\r\n")),
            "several digits": (
                many("long size", b"00a", grammar.HEXDIG),
                _EXTENSION,
                given(b"\r\n"),
            ),
            "last chunk": (
                fixed("last chunk", b"0"),
                fixed("last line end", b"\r\n"),
                given(b"", rb"(?=\r\n|\Z)"),
            ),
        },
    ),
    GrammarRule(
        name="chunk-ext",
        clause="RFC 9112 7.1.1",
        where=Where.CHUNK_LINE,
        valid=_CHUNK,
        alternatives={
            "name": re.compile(rb"[0-9a-fA-F]+;" + TOKEN + rb"\r\n"),
            "token": re.compile(rb"[0-9a-fA-F]+;" + TOKEN + b"=" + TOKEN + rb"\r\n"),
            "quoted-string": re.compile(rb'[0-9a-fA-F]+;[^;="]+="[^"\\\r\n]*"\r\n'),
            "several": re.compile(rb"[0-9a-fA-F]+(?:;[^;\r\n]+){2,}\r\n"),
            "whitespace around the semicolon": re.compile(
                rb"[0-9a-fA-F]+[ \t]+;[ \t]*[^\r\n]+\r\n"
            ),
            "whitespace around the equals": re.compile(
                rb"[0-9a-fA-F]+[ \t]*;[^=\r\n]+(?:[ \t]=|=[ \t])[^\r\n]+\r\n"
            ),
            "on the last chunk": re.compile(rb"0+[ \t]*;[^\r\n]+\r\n"),
        },
        samples={
            "token": (
                given(b"5", rb"[0-9a-fA-F]+"),
                fixed("semicolon", b";"),
                many("name", b"abc", grammar.TCHAR),
                fixed("equals", b"="),
                many("value", b"xyz", grammar.TCHAR),
                fixed("extension line end", b"\r\n"),
            ),
            "name": (
                given(b"5", rb"[0-9a-fA-F]+"),
                given(b";"),
                many("short name", b"a", grammar.TCHAR),
                given(b"\r\n", rb"(?:=[^\r\n]*)?\r\n"),
            ),
        },
    ),
    GrammarRule(
        name="quoted-string",
        clause="RFC 9110 5.6.4",
        where=Where.CHUNK_LINE,
        valid=_CHUNK,
        alternatives={
            "empty": re.compile(rb'[0-9a-fA-F]+;[^=]+=""\r\n'),
            "text": re.compile(rb'[0-9a-fA-F]+;[^=]+="[^"\\]+"\r\n'),
            "semicolon inside": re.compile(rb'[0-9a-fA-F]+;[^=]+="[^"\\\r\n]*;[^"\\\r\n]*"\r\n'),
            "quoted-pair": re.compile(rb'[0-9a-fA-F]+;[^="]+="[^"\\\r\n]*\\[^\r\n]+"\r\n'),
            "obs-text": re.compile(rb'[0-9a-fA-F]+;[^="]+="[^"\r\n]*[\x80-\xff][^"\r\n]*"\r\n'),
        },
        samples={
            "quoted-string": (
                given(b"5;a=", rb"[0-9a-fA-F]+;" + TOKEN + b"="),
                fixed("quote", b'"'),
                many("text", b"xyz", TEXT - frozenset(b'"\\')),
                fixed("last quote", b'"'),
                given(b"\r\n"),
            ),
            "quoted-pair": (
                given(b'5;a="x', rb"[0-9a-fA-F]+;" + TOKEN + rb'="[^"\\\r\n]*'),
                fixed("pair", b'\\"'),
                given(b'y"\r\n', rb'[^"\\\r\n]*"\r\n'),
            ),
        },
    ),
    GrammarRule(
        name="end of chunk-data",
        clause="RFC 9112 7.1",
        where=Where.CHUNK_END,
        valid=re.compile(rb"\r\n[0-9a-fA-F]"),
        alternatives={"line end": re.compile(rb"\r\n[0-9a-fA-F]")},
        samples={
            "line end": (fixed("data end", b"\r\n"), given(b"0", rb"[0-9a-fA-F]")),
        },
    ),
    GrammarRule(
        name="trailer-section",
        clause="RFC 9112 7.1.2",
        where=Where.TRAILER_LINE,
        valid=re.compile(rb"\r\n|" + grammar.FIELD_LINE.pattern + rb"\r\n", re.DOTALL),
        alternatives={
            "none": re.compile(rb"\r\n"),
            "field": re.compile(TOKEN + rb":[^\r\n]+\r\n\r\n"),
            "several fields": re.compile(rb"(?:" + TOKEN + rb":[^\r\n]*\r\n){2,}\r\n"),
            "empty value": re.compile(TOKEN + rb":[ \t]*\r\n"),
        },
        samples={
            "field": FIELD,
            "end": (fixed("end", b"\r\n"),),
        },
    ),
]
