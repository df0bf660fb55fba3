"""The strict response reader: laws over messages, every prefix, and what must be refused."""

from __future__ import annotations

import time

import pytest

from httpmark.harness.http import response_reader

GOOD = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 400 \r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a="b"\r\nhello\r\n0\r\nx: y\r\n\r\n',
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
]
BAD = [
    b"HTTP/1.1 200\r\n\r\n",
    b"HTTP/2 200 OK\r\n\r\n",
    b"\r\nHTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\n\r\n\r\n",
    b"HTTP/1.1 200 OK\r\na : b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
    b"HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n",
    b"HTTP/1.1 200 OK\r\na: \x00\r\n\r\n",
    b"HTTP/1.1 600 Odd\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloo\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad\r\n\r\n",
    b"<html>hello</html>",
    b"hello",
]


@pytest.mark.parametrize("octets", GOOD)
def test_a_good_message_ends_where_it_ends(octets: bytes) -> None:
    response = response_reader.read(octets, ended=False)
    assert response.complete
    assert response.end == len(octets)
    more = response_reader.read(octets + b"HTTP/1.1 200 OK\r\n", ended=False)
    assert more == response


@pytest.mark.parametrize("octets", GOOD)
def test_every_prefix_of_a_good_message_is_incomplete(octets: bytes) -> None:
    for end in range(len(octets)):
        with pytest.raises(response_reader.Incomplete):
            response_reader.read(octets[:end], ended=True)


@pytest.mark.parametrize("octets", BAD)
def test_a_bad_message_is_refused_and_stays_refused(octets: bytes) -> None:
    refused_at = None
    for end in range(len(octets) + 1):
        try:
            response_reader.read(octets[:end], ended=False)
            pytest.fail(f"{octets[:end]!r} was taken")
        except response_reader.Malformed:
            refused_at = refused_at if refused_at is not None else end
        except response_reader.Incomplete:
            assert refused_at is None
    assert refused_at is not None


def test_content_follows_the_first_rule_that_applies() -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1;x\r\n!\r\n0\r\n\r\n"
    )
    assert response_reader.read(chunked, ended=False).content == b"hi!"
    assert response_reader.read(chunked, ended=False).framing == "chunked"
    until_close = b"HTTP/1.1 200 OK\r\n\r\nall of it"
    assert response_reader.read(until_close, ended=True).content == b"all of it"
    assert response_reader.read(until_close, ended=True).complete
    assert not response_reader.read(until_close, ended=False).complete
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    assert response_reader.read(head, method=b"HEAD", ended=False).complete


def test_a_head_is_enough_where_only_the_head_was_awaited() -> None:
    response = response_reader.read(
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", ended=False, head_only=True
    )
    assert response.status == 200
    assert not response.complete


@pytest.mark.parametrize(
    ("head", "announced"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nconnection: Keep-Alive, CLOSE\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", False),
    ],
)
def test_close_is_announced_by_field_or_by_version(head: bytes, announced: bool) -> None:
    response = response_reader.read(head, ended=True, head_only=True)
    assert response.announces_close is announced


def test_interim_is_not_final() -> None:
    octets = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    first = response_reader.read(octets, ended=False)
    assert first.interim
    assert response_reader.read(octets, first.end, ended=False).status == 200
    assert not response_reader.read(b"HTTP/1.1 101 Switching\r\n\r\n", ended=False).interim


@pytest.mark.parametrize("octets", GOOD)
def test_h11_agrees_on_good_messages(octets: bytes) -> None:
    status = response_reader.read(octets, ended=False).status
    assert response_reader.second_opinion(octets, ended=False) == status


def test_h11_is_the_looser_reader() -> None:
    bare_lf = b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"
    assert response_reader.second_opinion(bare_lf, ended=False) == 200
    with pytest.raises(response_reader.Malformed):
        response_reader.read(bare_lf, ended=False)


def test_a_final_answer_is_read_after_interim_ones() -> None:
    hints, final = b"HTTP/1.1 103 H\r\nLink: </a>\r\n\r\n", b"HTTP/1.1 204 N\r\n\r\n"
    assert response_reader.read_final(hints + hints + final, ended=False).status == 204
    with pytest.raises(response_reader.Incomplete):
        response_reader.read_final(hints, ended=False)


def test_interim_answers_without_end_are_parted_in_one_way() -> None:
    hints = b"HTTP/1.1 102 Processing\r\n\r\n" * 24
    began = time.process_time()
    assert response_reader.final_status(hints) == 0
    assert response_reader.final_status(hints + b"HTTP/1.1 404 Not Found\r\n\r\n") == 404
    assert time.process_time() - began < 1


def test_the_first_stray_octet_of_a_line_is_named_whichever_it_is() -> None:
    for octets, at in ((b"HTTP/1.1 2\nx\rx\r\n", 10), (b"HTTP/1.1 2\rx\nx\r\n", 10)):
        with pytest.raises(response_reader.Malformed) as caught:
            response_reader.read(octets, ended=True)
        assert caught.value.at == at


@pytest.mark.parametrize("line", [b"HTTP/1.%s 200 OK", b"HTTP/1.1 %s OK", b"HTTP/%s 200 OK"])
def test_a_number_of_thousands_of_digits_is_a_fault_and_no_error(line: bytes) -> None:
    octets = line % (b"9" * 5000) + b"\r\nContent-Length: 0\r\n\r\n"
    with pytest.raises(response_reader.Malformed):
        response_reader.read(octets, ended=True)
    reading = response_reader.read_on(octets, 0, method=b"GET", ended=True)
    assert reading is not None
    assert "RESP-01" in [fault.check for fault in reading.faults]
