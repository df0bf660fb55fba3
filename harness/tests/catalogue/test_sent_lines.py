"""The lines of requests are found where they stand, up to the first request that is not valid."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import expectation, sent_lines
from httpmark.harness.catalogue.grammar_rules import Where

CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def found(sent: bytes) -> list[tuple[Where, bytes, int]]:
    return [
        (line.where, sent[line.at :].split(b"\r\n")[0], line.request)
        for line, _ in sent_lines.lines(sent)
    ]


def test_request_and_field_lines_of_several_requests() -> None:
    assert found(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: c\r\n\r\n") == [
        (Where.REQUEST_LINE, b"GET / HTTP/1.1", 0),
        (Where.FIELD_LINE, b"Host: a", 0),
        (Where.FIELD_LINE, b"", 0),
        (Where.REQUEST_LINE, b"GET /b HTTP/1.1", 1),
        (Where.FIELD_LINE, b"Host: c", 1),
        (Where.FIELD_LINE, b"", 1),
    ]


def test_nothing_is_read_after_a_request_that_is_not_valid() -> None:
    sent = b"GET  / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
    assert {number for _, _, number in found(sent)} == {0}


def test_the_lines_of_the_chunked_coding() -> None:
    sent = CHUNKED + b"5;a\r\nhello\r\n0\r\nX: y\r\n\r\n"
    assert found(sent)[4:] == [
        (Where.CHUNK_LINE, b"5;a", 0),
        (Where.CHUNK_END, b"", 0),
        (Where.CHUNK_LINE, b"0", 0),
        (Where.TRAILER_LINE, b"X: y", 0),
        (Where.TRAILER_LINE, b"", 0),
    ]


@pytest.mark.parametrize("broken", [b"5x\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloX0\r\n\r\n"])
def test_the_chunked_coding_is_read_up_to_the_first_fault(broken: bytes) -> None:
    places = [where for where, _, _ in found(CHUNKED + broken)[4:]]
    assert places in ([Where.CHUNK_LINE], [Where.CHUNK_LINE, Where.CHUNK_END])


@pytest.mark.parametrize(
    ("words", "number", "wanted"),
    [
        (["REJ"], 0, (False, True)),
        (["R400C", "501"], 0, (False, True)),
        (["CLOSE", "4xx"], 0, (False, True)),
        (["ACC"], 0, (True, False)),
        (["PARSED"], 0, (True, False)),
        (["405,501", "ACC"], 0, (True, False)),
        (["417"], 0, (True, True)),
        (["REJ", "ACC"], 0, (False, False)),
        (["EITHER"], 0, (False, False)),
        (["WAIT"], 0, (False, False)),
        (["ACC > REJ"], 0, (True, False)),
        (["ACC > REJ"], 1, (False, True)),
        (["REJ"], 1, (False, False)),
    ],
)
def test_what_is_wanted_of_a_request(
    words: list[str], number: int, wanted: tuple[bool, bool]
) -> None:
    expected = expectation.expectation(words, values={})
    assert sent_lines.wanted(expected, number) == sent_lines.Wanted(*wanted)


def test_what_the_published_suite_wants() -> None:
    assert sent_lines.wanted("seed", 0) == sent_lines.Wanted(refused=True)
    assert sent_lines.wanted("accepted", 0) == sent_lines.Wanted(accepted=True)
