"""Every set and pattern with samples in and samples out."""

from __future__ import annotations

import ipaddress
import itertools
import re
import time

import pytest

from httpmark.harness.http import grammar


def test_the_sizes_are_those_of_the_rfcs() -> None:
    assert len(grammar.TCHAR) == 77
    assert len(grammar.PCHAR) == 79
    assert len(grammar.TARGET) == 81
    assert len(grammar.UNRESERVED) == 66
    assert len(grammar.SUB_DELIMS) == 11
    assert len(grammar.CTL) == 33
    assert len(grammar.HEXDIG) == 22


def test_a_percent_sign_alone_is_no_target_byte() -> None:
    assert ord("%") not in grammar.TARGET
    assert ord("%") in grammar.TCHAR


def test_an_expression_is_read_left_to_right() -> None:
    assert grammar.octet_set("any - target") == grammar.ANY - grammar.TARGET
    assert grammar.octet_set("ctl - htab - cr - lf") == grammar.CTL - frozenset(b"\t\r\n")
    assert grammar.octet_set("hexdig + slash") == grammar.HEXDIG | frozenset(b"/")
    assert grammar.octet_set("slash - slash + cr") == grammar.CR
    assert grammar.octet_set("00..1f + 7f") == grammar.CTL
    assert grammar.octet_set("backslash - 5c + 0d") == grammar.CR


def test_the_classes_of_bytes_are_cut_by_no_set() -> None:
    classes = list(grammar.BYTE_CLASSES.items())
    assert sorted(octet for _, octets in classes for octet in octets) == list(range(256))
    cut = [
        (name, known)
        for name, octets in classes
        for known, members in grammar.SETS.items()
        if octets & members and octets - members
    ]
    assert cut == []


def test_the_pattern_of_ipv6_agrees_with_the_standard_library() -> None:
    pieces = (":", "::", "1:", "ab:", "1234:", "12345:", "1.2.3.4", "256.1.1.1", "0", "g", "1")
    texts = {
        "".join(each) for length in range(1, 5) for each in itertools.product(pieces, repeat=length)
    }
    texts |= {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::1:2:3:4:5:6:7", "1:2:3:4:5:6:1.2.3.4",
              "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:1.2.3.4", "1::2:3:4:5:6:7:8"}  # fmt: skip

    def is_valid(text: str) -> bool:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return False
        return True

    differing = [
        text for text in texts if bool(grammar.IPV6.fullmatch(text.encode())) != is_valid(text)
    ]
    assert differing == []


@pytest.mark.parametrize(
    "bad", ["nothing", "any target", "any -", "any * cr", "-", "0", "00..", "abc"]
)
def test_a_wrong_expression_is_refused(bad: str) -> None:
    with pytest.raises(ValueError):
        grammar.octet_set(bad)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (
            grammar.STATUS_LINE,
            [b"HTTP/1.1 200 OK", b"HTTP/1.0 404 ", b"HTTP/1.1 200 \xff\tx"],
            [b"HTTP/1.1 200", b"HTTP/2.0 200 OK", b"HTTP/1.1 20 OK", b"http/1.1 200 OK",
             b"HTTP/1.1  200 OK", b"HTTP/1.1 200 O\x00K", b"HTTP/1.1 200 OK\r"],
        ),
        (
            grammar.FIELD_LINE,
            [b"a:b", b"a: ", b"a:", b"a:\t b c \xff", b"!#$%&'*+-.^_`|~:x"],
            [b"a :b", b":b", b" a:b", b"a", b"a:b\x00", b"a:b\x7f", b"a(:b", b"a:b\r"],
        ),
        (
            grammar.CHUNK_LINE,
            [b"0", b"1aF", b"5;a", b"5 ; a = b", b'5;a="x y\\""', b"000000005;a;b=c"],
            [b"", b" 5", b"5 ", b"0x5", b"5;", b"5;a=", b"+5", b'5;a="b', b"5,a"],
        ),
        (grammar.CONTENT_LENGTH, [b"0", b"0005"], [b"", b"+5", b"5 ", b"5,5", b"-0", b"0x5"]),
        (
            grammar.HOST,
            [b"a", b"a:80", b"a:", b"[::1]:80", b"1.2.3.4", b"a%41_~!"],
            [b"", b":80", b"a b", b"a/b", b"a@b", b"a:b", b"[::1", b"a:80:80", b"%4g"],
        ),
        (
            grammar.ORIGIN_FORM,
            [b"/", b"//a", b"/a:b@c?d?/e", b"/%41", b"/?"],
            [b"", b"a", b"/ ", b"/#", b"/%", b"/%4", b"/%4g", b"/[", b"/\xff", b"?"],
        ),
        (
            grammar.ABSOLUTE_FORM,
            [b"http://a", b"HTTP://a:80/b?c", b"http://[::1]?x", b"x+y://a/"],
            [b"http:///a", b"http://u@a/", b"http:a", b"//a", b"1://a", b"http://a/#"],
        ),
        (grammar.AUTHORITY_FORM, [b"a:80", b"[::1]:80"], [b"a", b"a:", b"a:80/", b"u@a:80"]),
        (
            grammar.IPV4,
            [b"0.0.0.0", b"255.255.255.255", b"192.0.2.1"],
            [b"256.1.1.1", b"1.2.3", b"01.2.3.4", b"1.2.3.4."],
        ),
        (
            grammar.IP_LITERAL,
            [b"[::1]", b"[1:2:3:4:5:6:7:8]", b"[::1.2.3.4]", b"[v1.a]"],
            [b"::1", b"[::1", b"[zz1]", b"[::999.1.1.1]", b"[1::2::3]", b"[]"],
        ),
        (grammar.HTTP_VERSION, [b"HTTP/1.1", b"HTTP/9.0"], [b"http/1.1", b"HTTP/1.10", b"HTTP/1"]),
        (
            grammar.REQUEST_TARGET,
            [b"/", b"*", b"http://a/b?c", b"a:80", b"/a?b"],
            [b"", b"a", b"**", b"/a b", b"http://"],
        ),
        (
            grammar.QUOTED_STRING,
            [b'""', b'"a b"', b'"\\""', b'"\xff"'],
            [b'"', b'"a', b'"a""', b'"\\"', b'"\x00"', b"a"],
        ),
        (
            grammar.TRANSFER_CODINGS,
            [b"chunked", b"gzip;a=b, chunked", b'x ; a = "b;\\"" ,,chunked', b",chunked,"],
            [b"", b",", b"chunked;", b"chunked;a", b"chunked;a=", b'chunked;a="', b"a b"],
        ),
        (grammar.TOKENS, [b"a", b"a, b", b",a,,b,"], [b"", b",", b"a b", b"a;"]),
        (grammar.UPGRADE, [b"a", b"a/1.0, b"], [b"", b"a/", b"/1", b"a/b/c"]),
        (
            grammar.EXPECT,
            [b"100-continue", b'a="b";c=d, e'],
            [b"", b"100 continue", b"a=", b"a;b"],
        ),
        (
            grammar.RANGE,
            [b"bytes=0-4", b"bytes=5-", b"Bytes=-5, 1-2"],
            [b"bytes=", b"bytes=-", b"bytes=a-b", b"bytes 0-4", b"bytes=0"],
        ),
        (grammar.ENTITY_TAGS, [b"*", b'"a"', b'W/"a", "b"'], [b"", b"**", b"a", b'"a" "b"']),
        (
            grammar.HTTP_DATE,
            [b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sunday, 06-Nov-94 08:49:37 GMT",
             b"Sun Nov  6 08:49:37 1994"],
            [b"Sun, 06 Nov 1994 08:49:37", b"Sunday, 06 Nov 94 08:49:37 GMT", b"0"],
        ),
        (
            grammar.IMF_FIXDATE,
            [b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sun, 06 Nov 1994 23:59:60 GMT"],
            [b"Sun, 6 Nov 1994 08:49:37 GMT", b"Sun, 06 Nov 1994 24:49:37 GMT",
             b"Sun, 06 Nov 1994 08:49:37 UTC", b"Sunday, 06-Nov-94 08:49:37 GMT",
             b"Sun Nov  6 08:49:37 1994", b"sun, 06 Nov 1994 08:49:37 GMT"],
        ),
        (grammar.ENTITY_TAG, [b'"a"', b'W/"a"', b'""'], [b"a", b'"a', b'w/"a"', b'"a"b"', b'" "']),
        (grammar.TOKEN_LIST, [b"GET", b"GET, HEAD", b"a,b", b"*"], [b"", b"a b", b"a,", b",a"]),
        (
            grammar.SERVER,
            [b"a", b"nginx/1.2 (Debian)", b"a/1 (b (c) \\() d"],
            [b"", b"(a)", b"a/", b"a/b/c", b"a (b", b"a, b"],
        ),
        (
            grammar.URI_REFERENCE,
            [b"", b"/a?b#c", b"//a:80/b", b"http://[::1]/", b"../a", b"#a", b"a:b"],
            [b"/a b", b"/%4", b"/a#b#c", b"http://a:b/", b"1:a", b"/\\", b"/\xff", b'/"'],
        ),
    ],
)  # fmt: skip
def test_patterns_take_the_good_and_leave_the_bad(
    pattern: re.Pattern[bytes], good: list[bytes], bad: list[bytes]
) -> None:
    assert [sample for sample in good if not pattern.fullmatch(sample)] == []
    assert [sample for sample in bad if pattern.fullmatch(sample)] == []


def test_blanks_without_end_do_not_keep_the_reader_busy() -> None:
    began = time.process_time()
    match = grammar.FIELD_LINE.fullmatch(b"a:" + b" " * 1000 + b"b" + b" " * 1000 + b"c \t")
    assert match is not None
    assert match[2] == b"b" + b" " * 1000 + b"c"
    assert grammar.FIELD_LINE.fullmatch(b"a:" + b" " * 1000 + b"b\x00") is None
    assert time.process_time() - began < 1
