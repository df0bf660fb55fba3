"""Every set and pattern with samples in and samples out."""

from __future__ import annotations

import re

import pytest

from httpmark.harness import grammar


def test_the_sizes_are_those_of_the_rfcs() -> None:
    assert len(grammar.TCHAR) == 77
    assert len(grammar.PCHAR) == 79
    assert len(grammar.TARGET) == 81
    assert len(grammar.UNRESERVED) == 66
    assert len(grammar.SUB_DELIMS) == 11
    assert len(grammar.CTL) == 33
    assert len(grammar.HEXDIG) == 22


def test_a_percent_sign_alone_is_no_target_octet() -> None:
    assert ord("%") not in grammar.TARGET
    assert ord("%") in grammar.TCHAR


def test_an_expression_is_read_left_to_right() -> None:
    assert grammar.octet_set("any - target") == grammar.ANY - grammar.TARGET
    assert grammar.octet_set("ctl - htab - cr - lf") == grammar.CTL - frozenset(b"\t\r\n")
    assert grammar.octet_set("hexdig + slash") == grammar.HEXDIG | frozenset(b"/")
    assert grammar.octet_set("slash - slash + cr") == grammar.CR


@pytest.mark.parametrize("bad", ["nothing", "any target", "any -", "any * cr", "-"])
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
    ],
)  # fmt: skip
def test_patterns_take_the_good_and_leave_the_bad(
    pattern: re.Pattern[bytes], good: list[bytes], bad: list[bytes]
) -> None:
    assert [sample for sample in good if not pattern.fullmatch(sample)] == []
    assert [sample for sample in bad if pattern.fullmatch(sample)] == []
