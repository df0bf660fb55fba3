"""Secrets are hidden in whatever form they come back, and a message is read as before."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest

from httpmark.harness.http import masking, response_reader
from httpmark.harness.http.masking import Mask
from httpmark.harness.model.exchanges import End, Exchange, Outcome

KEY = 's3cr3t<"value">/of+owner'
MASK = Mask((f"X-Api-Key: {KEY}", "Authorization: Bearer abcdefgh", "X-A: 1"))


def test_what_is_masked_keeps_its_length_and_its_rest() -> None:
    mask = Mask(("X-Api-Key: s3cr3t-value", "Authorization: Bearer abcdefgh", "X-A: 1"))
    sent = b"GET /1 HTTP/1.1\r\nHost: h\r\nX-Api-Key: s3cr3t-value\r\nx-a:1\r\nX-B: 1\r\n\r\n"
    shown = mask.sent(sent)
    assert shown == sent.replace(b"s3cr3t-value", b"*" * 12).replace(b"x-a:1", b"x-a:*")
    assert mask.sent(b"\r\nX-Api-Key: s3c\r\n") == b"\r\nX-Api-Key: ***\r\n", "a part of it"
    assert mask.received(b"1 X-A: 1 abcdefgh") == b"1 X-A: 1 ********"
    assert mask.received(b"echo\r\nX-A: 1\r\nX-A: 12\r\n") == b"echo\r\nX-A: *\r\nX-A: 12\r\n"
    told = base64.b64encode(b"Bearer abcdefgh")
    assert base64.b64decode(mask.received(told)) == b"*" * 15


@pytest.mark.parametrize(
    "written",
    [KEY, json.dumps(KEY), html.escape(KEY), quote(KEY), quote(KEY, safe=""), f"({KEY})"],
)
def test_a_value_is_found_however_a_server_writes_it(written: str) -> None:
    octets = f"<p>you sent {written}, and abcdefgh</p>".encode()
    shown = MASK.received(octets)
    assert len(shown) == len(octets)
    assert not any(word in shown for word in (b"s3cr3t", b"owner", b"abcdefgh"))
    assert MASK.text(octets.decode()).encode() == shown


@pytest.mark.parametrize("ahead", range(6))
def test_a_value_is_found_inside_of_what_is_in_base64(ahead: int) -> None:
    whole = b"-" * ahead + KEY.encode() + b" and more"
    shown = base64.b64decode(MASK.received(base64.b64encode(whole)))
    assert len(shown) == len(whole)
    assert KEY[1:-1].encode() not in shown
    assert shown.count(b"*") >= len(KEY) - 2, "the first and the last byte share a character"
    assert shown.endswith(b" and more")


def test_basic_credentials_are_hidden_as_they_are_meant_too() -> None:
    pair = base64.b64encode(b"alice:pass-word").decode()
    mask = Mask((f"Authorization: Basic {pair}",))
    for said in (pair, "alice:pass-word", "pass-word"):
        assert mask.text(f"<{said}>") == f"<{'*' * len(said)}>"
    cookie = Mask(("Cookie: theme=dark; session=0123456789abcdef",))
    assert cookie.text("session 0123456789abcdef") == f"******* {'*' * 16}"


def test_a_value_that_looks_like_framing_changes_no_reading() -> None:
    """Else a field that the user sends would make a good answer a bad one."""
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\nConnection: keep-alive\r\n\r\n"
        + b"HTTP/1.1 1048576 keep-alive chunked".ljust(1 << 20, b".")
    )
    mask = Mask(("X-A: HTTP/1.1", "X-B: 1048576", "X-C: keep-alive", "X-D: chunked"))
    shown = mask.received(answer)
    head, _, content = shown.partition(b"\r\n\r\n")
    assert head == answer.partition(b"\r\n\r\n")[0]
    assert content.startswith(b"******** ******* ********** *******.")
    assert response_reader.final_status(shown) == 200
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0abcde\r\n"
    assert Mask(("X-A: chunked", "X-B: 0abcde")).received(chunked) == chunked
    sent = b"GET / HTTP/1.1\r\nContent-Length: 1048576\r\nX-A: HTTP/1.1\r\n\r\n"
    assert mask.sent(sent) == sent.replace(b"X-A: HTTP/1.1", b"X-A: ********")


def test_an_exchange_that_holds_a_piece_of_a_value_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_marked", [])
    monkeypatch.setattr(masking, "_mask", Mask(()))

    def made(sent: bytes) -> Exchange:
        return Exchange(
            "c", "f", sent, b"", Outcome.ANSWERED, End.OPEN, None, 1, len(sent), 0, False
        )

    line = b"GET / HTTP/1.1\r\nX-Key: 0123456789\r\n\r\n"
    assert masking.exchange(made(line)).sent == line, "nothing is marked"
    masking.mark(["X-Key: 0123456789"])
    assert not masking.leaves_a_part(made(line))
    assert masking.leaves_a_part(made(line.replace(b"\nX-Key", b"\nX-Ky").replace(b"9", b"")))
    assert b"0123456789" not in masking.exchange(made(line)).sent
