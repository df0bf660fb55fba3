"""Octets as text: nothing is lost, nothing is markup, and the shell sends the same again."""

from __future__ import annotations

import html
import re
import shutil
import socket
import ssl
import struct
import subprocess
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.catalogue import loading, lookup
from httpmark.harness.http import printable
from httpmark.harness.model import timeline
from httpmark.harness.model.cases import Facts, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.servers import certificates


@hypothesis.given(st.binary(max_size=300))
def test_wire_shows_every_octet_and_no_markup_but_its_own(sent: bytes) -> None:
    drawn = str(printable.wire(sent, limit=300))
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
    assert "1,800 more octets" in printable.wire(b"a" * 2000)


HERE = printable.Place("127.0.0.1", 18080)
FACTS = Facts(host="a.example:81", address="127.0.0.1", port=18080)


def exchange(*writes: bytes, half_close: bool = False, unsent: bytes = b"") -> Exchange:
    events = [(timeline.SENT, len(octets)) for octets in writes]
    events += [(timeline.OWN_FIN, 0)] * half_close
    return Exchange(
        "c", "c", b"".join(writes) + unsent, b"", Outcome.HUNG, End.OPEN, None, 0, 0,
        timeline=b"".join(struct.pack("<BII", kind, 0, octets) for kind, octets in events),
    )  # fmt: skip


@hypothesis.given(st.binary(max_size=120))
@hypothesis.example(b"-\0")
@hypothesis.example(b"\0005%d\\n'")
@hypothesis.settings(max_examples=60, deadline=None)
def test_a_pipe_sends_the_same_octets(sent: bytes) -> None:
    line = printable.piped(sent, HERE)
    command, _, rest = line.rpartition(" | ")
    assert rest == "nc -q 2 127.0.0.1 18080"
    assert "\n" not in line
    said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, timeout=10, check=True)
    assert said.stdout == sent


@pytest.mark.parametrize(
    ("facts", "client"),
    [
        (FACTS, "nc -q 2 127.0.0.1 18080"),
        (msgspec.structs.replace(FACTS, address="::1"), "nc -q 2 ::1 18080"),
        (
            msgspec.structs.replace(FACTS, scheme="https"),
            "openssl s_client -quiet -connect 127.0.0.1:18080",
        ),
        (
            msgspec.structs.replace(FACTS, scheme="https", address="::1"),
            "openssl s_client -quiet -connect '[::1]:18080'",
        ),
        (msgspec.structs.replace(FACTS, unix="/run/a b.sock"), "nc -q 2 -U '/run/a b.sock'"),
        (msgspec.structs.replace(FACTS, address=None), "nc -q 2 HOST PORT"),
        (None, "nc -q 2 HOST PORT"),
    ],
)
@pytest.mark.parametrize("host", [b"$(reboot):80", b"h:9", b"", None])
def test_a_line_leads_to_the_target_whatever_its_host_says(
    facts: Facts | None, client: str, host: bytes | None
) -> None:
    field = b"" if host is None else b"Host: " + host + b"\r\n"
    line = printable.by_hand(exchange(b"GET / HTTP/1.1\r\n" + field + b"\r\n"), facts)
    assert line is not None
    assert line.endswith(f" | {client}")


def test_every_case_that_fits_a_line_leads_to_its_target() -> None:
    """The place is that of the target in all of them, be the request as odd as it may."""
    known = loading.load()
    facts = msgspec.structs.replace(
        lookup.EXAMPLE, host="other.example:1234", address="127.0.0.9", port=4321
    )
    told = 0
    for family in known.families.values():
        if family.generated or known.inapplicable(family.id, facts) is not None:
            continue
        for planned in known.planned(family.id, facts):
            sends = [step.data for step in planned.case.steps if step.op is Op.SEND]
            if not sends:
                continue
            line = printable.by_hand(exchange(*sends), facts)
            if line is not None:
                told += 1
                assert line.endswith("127.0.0.9 4321") or "('127.0.0.9', 4321)" in line.replace(
                    "'\"'\"'", "'"
                )
    assert told > 300


def test_a_long_line_is_none() -> None:
    assert printable.by_hand(exchange(b"a" * printable.LINE_CHARACTERS_MAX), FACTS) is None
    over_tls = msgspec.structs.replace(FACTS, scheme="https")
    assert printable.by_hand(exchange(b"a", half_close=True), over_tls) is None


def test_the_request_that_follows_a_case_needs_no_time_of_its_own() -> None:
    canary = b"GET /?canary-c HTTP/1.1\r\n\r\n"
    sent = printable.by_hand(exchange(b"a", canary), FACTS)
    assert sent is not None
    assert sent.startswith("printf 'aGET /?canary-c")
    assert printable.by_hand(exchange(b"a", unsent=canary), FACTS) == sent


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_writes_apart_and_a_half_close_are_said_in_python(family: int, tmp_path: Path) -> None:
    unix = family == socket.AF_UNIX
    with socket.socket(family) as listener:
        listener.bind(str(tmp_path / "s") if unix else ("127.0.0.1", 0))
        listener.listen()
        facts = msgspec.structs.replace(
            FACTS,
            unix=str(tmp_path / "s") if unix else None,
            port=80 if unix else listener.getsockname()[1],
        )
        line = printable.by_hand(exchange(b"a\xff", b"b'", half_close=True), facts)
        assert line is not None
        with subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE) as client:
            talk = listener.accept()[0]
            received = b""
            while piece := talk.recv(100):
                received += piece
            talk.sendall(b"answer")
            talk.close()
            said, _ = client.communicate(timeout=20)
    assert received == b"a\xffb'"
    assert b"answer" in said


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on this machine")
@pytest.mark.parametrize("in_one_write", [True, False])
def test_over_tls_the_octets_arrive(tmp_path: Path, in_one_write: bool) -> None:
    pair = certificates.Authority(tmp_path).server("127.0.0.1")
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(pair.certificate, pair.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        facts = msgspec.structs.replace(FACTS, scheme="https", port=listener.getsockname()[1])
        line = printable.by_hand(
            exchange(*([b"Q\nR\n"] if in_one_write else [b"Q\n", b"R\n"])), facts
        )
        assert line is not None
        with subprocess.Popen(
            ["sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as client:
            talk = own.wrap_socket(listener.accept()[0], server_side=True)
            received = b""
            while len(received) < 4:
                received += talk.recv(100)
            talk.sendall(b"answer")
            talk.close()
            said, _ = client.communicate(timeout=20)
    assert received == b"Q\nR\n"
    assert b"answer" in said
