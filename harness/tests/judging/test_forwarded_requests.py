"""Requests on both sides of a proxy: which are the same, and how many there can be."""

from __future__ import annotations

import pytest

from httpmark.harness.http import request_reader
from httpmark.harness.judging import forwarded_requests as requests
from httpmark.harness.model.forwarding import Upstream

GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: h\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "most"),
    [
        (b"", 0),
        (GET + GET, 2),
        (GET + GET[:9], 2),
        (POST + b"Content-Length: 5\r\n\r\nhel", 1),
        (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET, 1),
        (POST + b"Content-Length: a\r\n\r\n" + GET, 1),
        (POST + b"Content-Length: 5, 6\r\n\r\n" + GET, 1),
        (POST + b"Content-Length: 5, 05\r\n\r\nhello" + GET, None),
        (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + GET, None),
        (GET.replace(b"\r\n\r\n", b"\r\nX : a\r\n\r\n") + GET, None),
        (GET.replace(b"\r\n", b"\n") + GET, None),
    ],
)
def test_how_many_requests_can_reach_the_origin(sent: bytes, most: int | None) -> None:
    assert requests.most(request_reader.read(sent)) == most


def test_a_length_that_the_chunks_override_is_left_out() -> None:
    both = POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    octets, read = requests.by_chunks(GET + both + both + GET)
    assert [one.whole for one in read.requests] == [True] * 4
    assert read.requests[2].content(octets) == b"hello"
    assert b"Content-Length" not in octets


def test_what_is_valid_stays_as_it_is() -> None:
    sent = GET + POST + b"Content-Length: 5\r\n\r\nhello"
    assert requests.by_chunks(sent) == (sent, request_reader.read(sent))


def upstream(octets: bytes, answers: bytes) -> Upstream:
    return Upstream(number=1, opened_us=1, to_origin=octets, from_origin=answers)


def test_each_request_has_the_status_of_its_answer() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    found = requests.reached((upstream(GET + GET + GET, interim + OK + OK),))
    assert [one.status for one in found] == [200, 200, 0]
    assert requests.answers((upstream(GET, interim + OK), upstream(GET, OK))) == 2


def test_the_same_place_is_one_however_it_is_spelt() -> None:
    sent = request_reader.read(b"GET http://h/%61?q HTTP/1.1\r\nHost: h\r\n\r\n" + GET).requests
    reached = requests.reached((upstream(GET.replace(b"/a", b"/a?q") + GET, OK),))
    assert [requests.is_same(one, reached[0]) for one in sent] == [True, False]
    read = request_reader.read(b"GET http://h/%61?q HTTP/1.1\r\nHost: h\r\n\r\n" + GET)
    assert [one.request.target for _, one in requests.pairs(read, reached)] == [b"/a?q", b"/a"]


def test_a_request_without_its_neighbour_is_paired_with_itself() -> None:
    read = request_reader.read(GET.replace(b"/a", b"/b") + GET)
    reached = requests.reached((upstream(GET, OK),))
    ((sent, _),) = requests.pairs(read, reached)
    assert sent.target == b"/a"
