"""What the judge knows of the requests it sent: certain only while every byte is valid."""

from __future__ import annotations

import pytest

from httpmark.harness.http import request_reader

GET = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5;a="b"\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n'
)
VALID = [
    GET,
    POST,
    CHUNKED,
    CHUNKED.replace(b"Trailer: x\r\n", b""),
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET /a//b?c=%41/? HTTP/1.1\r\nHost:\t[::1]:80 \r\nX:\xff\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
    b"GET http://a:80?x HTTP/1.1\r\nHost: b\r\n\r\n",
    b"M-SEARCH /x HTTP/1.2\r\nHost: a\r\n\r\n",
]
NOT_VALID = [
    b"\r\n" + GET,
    GET.replace(b"\r\n", b"\n"),
    GET.replace(b"GET ", b"GET  "),
    GET.replace(b"/hello", b"/hel%4lo"),
    GET.replace(b"/hello", b"/hello#a"),
    GET.replace(b"/hello", b"hello"),
    GET.replace(b"/hello", b"*"),
    GET.replace(b"/hello", b"http://u@a/"),
    GET.replace(b"1.1", b"1.10"),
    GET.replace(b"HTTP", b"http"),
    GET.replace(b"1.1", b"2.0"),
    GET.replace(b"Host: a\r\n", b""),
    GET.replace(b"Host: a", b"Host:"),
    GET.replace(b"Host: a", b"Host: a b"),
    GET.replace(b"Host: a", b"Host: a\r\nHost: a"),
    GET.replace(b"Host: a", b"Host: a\r\n folded"),
    GET.replace(b"Host: a", b"Host: a\r\nX : y"),
    GET.replace(b"Host: a", b"Host: a\r\nX: \x00"),
    GET.replace(b"Host: a", b"Host: a\r\nX"),
    POST.replace(b": 5", b": +5"),
    POST.replace(b": 5", b": 5, 5"),
    POST.replace(b": 5", b": " + b"9" * 30),
    POST.replace(b": 5", b": 5\r\nContent-Length: 5"),
    POST.replace(b": 5", b": 5\r\nTransfer-Encoding: chunked"),
    CHUNKED.replace(b"1.1", b"1.0"),
    CHUNKED.replace(b"chunked", b"gzip, chunked"),
    CHUNKED.replace(b"5;", b"5 5;"),
    CHUNKED.replace(b"hello", b"helloX"),
    CHUNKED.replace(b"Trailer: x", b"Trailer : x"),
    b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n",
    b"CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
]


@pytest.mark.parametrize("octets", VALID)
def test_a_valid_request_ends_where_it_ends(octets: bytes) -> None:
    found = request_reader.read(octets + GET)
    assert [request.start for request in found.requests] == [0, len(octets)]
    assert all(request.valid and request.whole for request in found.requests)
    assert found.certain == len(octets) + len(GET)


@pytest.mark.parametrize("octets", [one for one in VALID if one[-1:] != b"o"])
def test_every_beginning_of_a_valid_request_is_valid_so_far(octets: bytes) -> None:
    wrong = []
    for end in range(1, len(octets)):
        found = request_reader.read(octets[:end])
        if found.certain != end or found.requests[0].whole:
            wrong.append(octets[:end])
    assert wrong == []


@pytest.mark.parametrize("octets", NOT_VALID)
def test_nothing_is_certain_from_a_message_that_is_not_valid(octets: bytes) -> None:
    found = request_reader.read(GET + octets + GET)
    assert found.certain == len(GET)
    assert not found.requests[1].valid
    assert len(found.requests) == 2


def test_content_is_no_request() -> None:
    smuggled = POST.replace(b"5", b"%d" % len(GET)).replace(b"hello", GET)
    found = request_reader.read(smuggled)
    assert len(found.requests) == 1
    assert found.certain == len(smuggled)


def test_the_line_of_a_message_that_is_not_valid_is_told_where_it_is() -> None:
    broken = GET.replace(b"Host: a", b"Host: a\r\nX : y").replace(b"GET", b"HEAD")
    request = request_reader.read(broken).requests[0]
    assert (request.method, request.line_valid, request.is_1_x) == (b"HEAD", True, True)
    request = request_reader.read(GET.replace(b"1.1", b"2.0")).requests[0]
    assert (request.line_valid, request.major, request.is_1_x) == (True, 2, False)
    request = request_reader.read(GET.replace(b"/hello", b"/%")).requests[0]
    assert (request.method, request.line_valid) == (b"", False)


@pytest.mark.parametrize(
    ("octets", "closes"),
    [
        (GET, False),
        (GET.replace(b"Host: a", b"Host: a\r\nconnection: x, CLOSE"), True),
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", False),
    ],
)
def test_whether_the_connection_is_to_end_is_told(octets: bytes, closes: bool) -> None:
    assert request_reader.read(octets).requests[0].says_close is closes


def test_conditions_are_told() -> None:
    assert not request_reader.read(GET).requests[0].conditional
    asked = GET.replace(b"Host: a", b'Host: a\r\nIf-None-Match: "x"')
    assert request_reader.read(asked).requests[0].conditional


def test_what_a_whole_request_holds_is_told() -> None:
    post, chunked = (request_reader.read(octets).requests[0] for octets in (POST, CHUNKED))
    assert post.content(POST) == b"hello"
    assert chunked.content(CHUNKED) == b"hello0123456789"
    assert (post.trailers, chunked.trailers) == ((), ((b"trailer", b"x"),))
    assert request_reader.read(GET).requests[0].content(GET) == b""
