"""Octets as text: nothing is lost, nothing is markup, and the shell sends the same again."""

from __future__ import annotations

import html
import re
import subprocess

import hypothesis
import hypothesis.strategies as st

from httpmark.harness import octets


@hypothesis.given(st.binary(max_size=300))
def test_wire_shows_every_octet_and_no_markup_but_its_own(sent: bytes) -> None:
    drawn = str(octets.wire(sent, limit=300))
    assert set(re.findall(r"<[^>]*>", drawn)) <= {"<b>", "</b>"}
    assert drawn.count("<b>") == drawn.count("</b>")
    text = html.unescape(re.sub(r"</?b>", "", drawn).replace("\n", "\\e"))
    assert all(0x20 <= ord(character) < 0x7F for character in text)
    escapes = {"e": b"\r\n", "r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\"}
    back, at = b"", 0
    while at < len(text):
        if text[at] != "\\":
            back, at = back + text[at].encode(), at + 1
        elif text[at + 1] == "x":
            back, at = back + bytes.fromhex(text[at + 2 : at + 4]), at + 4
        else:
            back, at = back + escapes[text[at + 1]], at + 2
    assert back == sent


def test_a_long_answer_is_cut_and_says_so() -> None:
    assert "1,800 more octets" in octets.wire(b"a" * 2000)


@hypothesis.given(st.binary(max_size=120))
@hypothesis.example(b"-\0")
@hypothesis.example(b"\0005%d\\n'")
@hypothesis.settings(max_examples=60, deadline=None)
def test_the_reproducer_sends_the_same_octets(sent: bytes) -> None:
    line = octets.reproducer(sent)
    command, _, rest = line.rpartition(" | nc ")
    assert rest == "-q 2 127.0.0.1 8080" or b":" in sent
    assert "\n" not in line
    said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, timeout=10, check=True)
    assert said.stdout == sent


def test_the_reproducer_takes_the_host_of_the_request_but_never_shell_words() -> None:
    good = octets.reproducer(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:18080\r\n\r\n")
    assert good.endswith("| nc -q 2 127.0.0.1 18080")
    bad = octets.reproducer(b"GET / HTTP/1.1\r\nHost: $(reboot):80\r\n\r\n")
    assert bad.endswith("| nc -q 2 127.0.0.1 8080")
