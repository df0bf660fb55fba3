"""The language of expectations: what is read, and what is refused with a reason."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import expectation
from httpmark.harness.catalogue.expectation import Alternative, Answer, Demand

VALUES = {"h": b"a:1", "octet": b"\xff"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("ACC", Alternative((Answer("ACC"),))),
        ("R400; close", Alternative((Answer("R400"),), "close")),
        ("ACC*3; fin", Alternative((Answer("ACC"),) * 3, "fin")),
        ("ACC; empty > REJ; close",
         Alternative((Answer("ACC", (Demand("content"),)), Answer("REJ")), "close")),
        ("405,501", Alternative((Answer("405,501"),))),
        ("4xx", Alternative((Answer("4xx"),))),
        (r"ACC; content a\r\n", Alternative((Answer("ACC", (Demand("content", text=b"a\r\n"),)),))),
        ("ACC; field X-A = a{octet}b", Alternative(
            (Answer("ACC", (Demand("field", "x-a", "=", b"a\xffb"),)),))),
        ("ACC; field X-A = ", Alternative((Answer("ACC", (Demand("field", "x-a", "="),)),))),
        ("ACC; field X-A =", Alternative((Answer("ACC", (Demand("field", "x-a", "="),)),))),
        ("ACC; field? X-A = a", Alternative(
            (Answer("ACC", (Demand("field?", "x-a", "=", b"a"),)),))),
        ("413; beyond 4 5", Alternative((Answer("413", (Demand("beyond", "yes"),)),))),
        ("413; beyond 5 5", Alternative((Answer("413", (Demand("beyond"),)),))),
        ("WAIT; no beyond 4 5", Alternative((Answer("WAIT", (Demand("beyond"),)),))),
        ("WAIT; no beyond 5 5", Alternative((Answer("WAIT", (Demand("beyond", "yes"),)),))),
        ("413; beyond {limit.content_bytes} 5", Alternative((Answer("413", (Demand("beyond"),)),))),
        ("ACC; no field X-B", Alternative((Answer("ACC", (Demand("no field", "x-b"),)),))),
        (r"ACC; field X-A ~ a +{h}", Alternative(
            (Answer("ACC", (Demand("field", "x-a", "~", rb"a +a:1"),)),))),
        ("ACC; no target /a", Alternative((Answer("ACC", (Demand("no target", text=b"/a"),)),))),
        ("ACC; status 2xx,405; has Allow",
         Alternative((Answer("ACC", (Demand("status", "2xx,405"), Demand("has", "allow"))),))),
        ("talk.some_name", Alternative((Answer("talk.some_name"),))),
    ],
)  # fmt: skip
def test_it_is_read(text: str, read: Alternative) -> None:
    assert expectation.alternative(text, VALUES) == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("OK", "no word 'OK'"),
        ("ACC*0", "N must be from 1"),
        ("ACC*x", "N must be from 1"),
        ("ACC; applause", "no demand 'applause'"),
        ("ACC; close; open", "both 'close' and 'open'"),
        ("ACC; close > REJ", "'close' must stand with the last answer"),
        ("ACC; field X-A ~ (", "is no pattern"),
        ("ACC; status 6xx", "no demand"),
        ("ACC; field", "no demand"),
        ("413; beyond 4 much", "beyond LIMIT NUMBER"),
        ("", "no word ''"),
    ],
)
def test_what_it_cannot_say_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(").replace("*", r"\*")):
        expectation.alternative(text, VALUES)


def test_waits_and_answers_follow_from_the_alternatives() -> None:
    read = expectation.expectation(["REJ"], ["WAIT"], values={})
    assert read.waits
    assert read.answers == 1
    assert expectation.expectation(["REJ", "ACC*5"], values={}).answers == 5
    assert read.text == "REJ"
    assert read.allowed_text == "WAIT"
