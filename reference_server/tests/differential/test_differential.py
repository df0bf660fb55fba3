"""Our parser beside h11, Go's net/http and node's llhttp: the same messages, each verdict compared.

A parser accepts a message, refuses it or asks for more. Where two disagree the difference must be
one that ALLOWED explains; one that nobody explained fails.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h11
import pytest
from messages import designed, harmed_messages

from httpmark.harness.tests.shared.pytest_rules import starts_process

HERE = Path(__file__).resolve().parent
SEED = int(os.environ.get("HTTPMARK_DIFFERENTIAL_SEED", "20260101"))
RUNS = int(os.environ.get("HTTPMARK_DIFFERENTIAL_RUNS", "4000"))
DEADLINE_S = 240


@pytest.fixture(scope="module")
def messages() -> list[bytes]:
    sys.stdout.write(f"HTTPMARK_DIFFERENTIAL_SEED={SEED} HTTPMARK_DIFFERENTIAL_RUNS={RUNS}\n")
    return designed() + harmed_messages(SEED, RUNS)


def ask(command: list[str], messages: list[bytes]) -> list[str]:
    """What a reader says of each message: one line for each, the first word is the verdict."""
    asked = b"".join(struct.pack(">I", len(message)) + message for message in messages)
    done = subprocess.run(command, input=asked, capture_output=True, timeout=DEADLINE_S, check=True)
    said = done.stdout.decode("utf-8", "replace").split("\n")[:-1]
    assert len(said) == len(messages), f"{command} answered {len(said)} of {len(messages)}"
    return said


def verdicts_binary() -> Path:
    named = os.environ.get("HTTPMARK_TEST_BINARIES")
    folder = Path(named) if named else HERE.parents[2] / "build" / "release"
    found = sorted(folder.rglob("httpmark-verdicts")) if folder.is_dir() else []
    if found:
        return found[0]
    missing = f"no httpmark-verdicts in {folder}: cmake --preset release, then build it"
    if os.environ.get("HTTPMARK_REQUIRE"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="module")
@starts_process
def ours(messages: list[bytes]) -> list[str]:
    return ask([str(verdicts_binary())], messages)


# ---- The differences that are explained ----------------------------------------------------------

Predicate = Callable[[bytes], bool]
TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
HOST = rb"(?:(?:[A-Za-z0-9._~!$&'()*+,;=\-]|%[0-9A-Fa-f]{2})+|\[::1?\])(?::\d{0,4})?"
ORIGIN = rb"(?:[A-Za-z0-9._~!$&'()*+,;=:@/\-]|%[0-9A-Fa-f]{2})*"
QUERY = rb"(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\-]|%[0-9A-Fa-f]{2})*)?"
TARGET = re.compile(rb"/" + ORIGIN + QUERY + rb"|[Hh][Tt][Tt][Pp]://" + HOST + rb"(?:/" + ORIGIN
                    + rb")?" + QUERY)  # fmt: skip
EXTENSION = (
    rb"[ \t]*;[ \t]*" + TOKEN + rb"(?:[ \t]*=[ \t]*(?:" + TOKEN + rb'|"[^"\\\x00-\x08\x7f]*"))?'
)


def matches(pattern: bytes) -> Predicate:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda message: compiled.search(message) is not None


def head(message: bytes) -> bytes:
    return re.split(rb"\r?\n\r?\n", message.lstrip(b"\r\n"))[0]


def values(message: bytes, name: bytes) -> list[bytes]:
    lines = re.findall(rb"(?im)^" + name + rb"[ \t]*:([^\n]*)$", head(message))
    return [line.strip(b" \t\r") for line in lines]


def words(message: bytes) -> list[bytes]:
    """The words of the request-line."""
    return re.split(rb"\r?\n", message.lstrip(b"\r\n"))[0].split(b" ")


def head_is_incomplete(message: bytes) -> bool:
    return re.search(rb"\n\r?\n", message.lstrip(b"\r\n")) is None


def host_is_odd(message: bytes) -> bool:
    hosts = values(message, b"Host")
    return len(hosts) != 1 or re.fullmatch(HOST, hosts[0]) is None


def target_is_odd(message: bytes) -> bool:
    line = words(message)
    return len(line) != 3 or TARGET.fullmatch(line[1]) is None


def method_is_unknown(message: bytes) -> bool:
    known = {b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS"}
    return words(message)[0] not in known


def length_is_odd(message: bytes) -> bool:
    lengths = values(message, b"Content-Length")
    return len(lengths) > 1 or any(re.fullmatch(rb"\d{1,8}", one) is None for one in lengths)


def coding_is_odd(message: bytes) -> bool:
    codings = values(message, b"Transfer-Encoding")
    odd = len(codings) > 1 or any(coding.lower() != b"chunked" for coding in codings)
    return bool(codings) and (odd or bool(values(message, b"Content-Length"))
                              or words(message)[-1] != b"HTTP/1.1")  # fmt: skip


def chunks_are_incomplete(message: bytes) -> bool:
    return bool(values(message, b"Transfer-Encoding")) and not message.endswith(b"\r\n\r\n")


def extension_is_odd(message: bytes) -> bool:
    lines = re.findall(rb"\n[0-9A-Fa-f]+([ \t;][^\r\n]*)", message)
    return any(re.fullmatch(rb"(?:" + EXTENSION + rb")+", line) is None for line in lines)


@dataclass(frozen=True)
class Difference:
    name: str
    peers: str
    ours: str
    theirs: str
    applies: Predicate
    because: str


def lenient(name: str, peers: str, applies: Predicate, because: str) -> Difference:
    """We refuse, they accept, or would if there were more."""
    return Difference(name, peers, "reject", "accept need-more", applies, because)


def stricter(name: str, peers: str, applies: Predicate, because: str) -> Difference:
    """They refuse what we accept, or would accept if there were more."""
    return Difference(name, peers, "accept need-more", "reject", applies, because)


ALLOWED = [
    lenient("judged late", "h11 go node", head_is_incomplete,
            "RFC 9112 2.2 sets no time: we refuse at the octet, they at the end of a line or head"),
    Difference("chunks judged late", "h11 go", "reject", "need-more", chunks_are_incomplete,
               "RFC 9112 7.1 sets no time: they wait for the end of a line or of the trailers"),
    lenient("bare LF", "h11 go", matches(rb"(?<!\r)\n"), "RFC 9112 2.2: MAY take LF for CRLF"),
    lenient("bare CR", "h11 node", matches(rb"\r(?!\n)"), "RFC 9112 2.2: MAY replace it with SP"),
    lenient("line folding", "h11 go", matches(rb"\n[ \t]"), "RFC 9112 5.2: MAY join the lines"),
    lenient("control octets", "h11", matches(rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]"),
            "RFC 9110 5.5: other CTLs MAY be kept in a value"),
    lenient("space before colon", "go", matches(rb"\n[^:\n]*[ \t][^:\n]*:"),
            "none: RFC 9112 5.1 MUST refuse; Go leaves it to the handler"),
    lenient("Host", "h11 go node", host_is_odd,
            "none: RFC 9112 3.2 MUST refuse; h11 and node count, Go leaves it to its server"),
    lenient("target", "h11 go node", target_is_odd,
            "RFC 9112 3.2: 400 is a SHOULD; they leave the grammar to the application"),
    lenient("method", "h11 go node", method_is_unknown,
            "RFC 9110 9.1: 501 is ours to give; they leave it to the application"),
    lenient("major version", "h11 go node", matches(rb"HTTP/[02-9]\.\d"),
            "RFC 9110 15.6.6: 505 is a MAY"),
    lenient("Content-Length", "h11 go node", length_is_odd,
            "RFC 9110 8.6: equal values MAY be collapsed; our limit of size is ours alone"),
    lenient("Transfer-Encoding", "h11 go node", coding_is_odd,
            "RFC 9112 6.1: with a length, in 1.0 or unknown, a server MAY or SHOULD refuse"),
    lenient("expectation", "h11 go node", lambda m: bool(values(m, b"Expect")),
            "RFC 9110 10.1.1: 417 is a MAY"),
    lenient("chunk extension", "h11 go node", extension_is_odd,
            "RFC 9112 7.1.1: unknown extensions are ignored; they do not read their grammar"),
    lenient("chunk size", "h11 go node", matches(rb"\n[0-9A-Fa-f]{7}"),
            "our limit of size is ours alone"),
    lenient("trailer name", "go", matches(rb"\r\n0\r\n[^:\n]* :"),
            "none: RFC 9112 5.1 MUST refuse; Go reads trailers like fields"),
    lenient("empty lines", "node", lambda m: m.startswith((b"\r\n\r\n", b"\n", b"\r\n\n")),
            "RFC 9112 2.2: SHOULD ignore at least one; we ignore exactly one"),
    stricter("empty line", "h11 go", lambda m: m.startswith((b"\r",)),
             "RFC 9112 2.2: ignoring an empty line is a SHOULD"),
    stricter("empty expectation", "node", matches(rb"\nExpect:[ \t]*\r"),
             "none: RFC 9110 10.1.1 has a list, which may be empty"),
    stricter("known methods only", "node", method_is_unknown,
             "RFC 9110 9.1: it has no 501 and refuses at the octet; we when the head is complete"),
    stricter("target judged early", "node", target_is_odd,
             "RFC 9112 3.2 sets no time: it refuses at the octet, we when the line is complete"),
    stricter("framing in trailers", "node",
             matches(rb"\r\n0\r\n(?:[^\r\n]+\r\n)*(?:Transfer-Encoding|Content-Length)"),
             "RFC 9110 6.5.1: senders MUST NOT; we drop such a trailer"),
    stricter("minor version", "node", matches(rb"HTTP/1\.[2-9]"),
             "none: RFC 9110 2.5 SHOULD be treated as the highest minor version known"),
    stricter("length judged early", "node", length_is_odd,
             "RFC 9112 6.3 sets no time: it refuses at the octet, we when the head is complete"),
    stricter("coding judged early", "node", lambda m: coding_is_odd(m) and head_is_incomplete(m),
             "RFC 9112 6.3 sets no time: it refuses at the octet, we when the head is complete"),
    stricter("empty list member", "h11 go node", coding_is_odd,
             "none: RFC 9110 5.6.1.2 MUST ignore empty members; they compare the whole value"),
    stricter("tab behind a framing value", "node",
             matches(rb"\n(?:Transfer-Encoding|Content-Length):[^\n]*\t[ \t]*\r"),
             "none: RFC 9112 5 has OWS there, and OWS may be HTAB"),
    stricter("space in chunk extension", "h11 go node",
             matches(rb"\n[0-9A-Fa-f]+(?:;[^\r\n]*)?[ \t]+(?:[;=]|\Z)"),
             "none: RFC 9112 7.1.1 has BWS there, which MUST be parsed"),
]  # fmt: skip


def unexplained(peer: str, messages: list[bytes], ours: list[str], theirs: list[str]) -> list[str]:
    found = []
    used: Counter[str] = Counter()
    for message, our, their in zip(messages, ours, theirs, strict=True):
        mine, other = our.split(" ")[0], their.split(" ")[0]
        if mine == other:
            continue
        for difference in ALLOWED:
            fits = mine in difference.ours.split() and other in difference.theirs.split()
            if fits and peer in difference.peers.split() and difference.applies(message):
                used[difference.name] += 1
                break
        else:
            found.append(f"{message!r}\n    ours {our}; {peer} {their}")
    sys.stdout.write(f"{peer}: {len(messages)} messages, explained {dict(used)}\n")
    return found


# ---- The peers -----------------------------------------------------------------------------------


def h11_verdict(message: bytes) -> str:
    connection = h11.Connection(h11.SERVER)
    if message:  # nothing at all would mean the end of the stream
        connection.receive_data(message)
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                return "need-more"
            if event is h11.PAUSED or isinstance(event, h11.EndOfMessage):
                return "accept"
    except h11.RemoteProtocolError as refused:
        return f"reject {refused}"


def test_h11_and_we_differ_only_where_it_is_explained(
    messages: list[bytes], ours: list[str]
) -> None:
    theirs = [h11_verdict(message) for message in messages]
    assert not unexplained("h11", messages, ours, theirs)


@pytest.mark.process
@pytest.mark.needs("go")
def test_go_and_we_differ_only_where_it_is_explained(
    messages: list[bytes], ours: list[str], tmp_path: Path
) -> None:
    reader = tmp_path / "go_reader"
    subprocess.run(
        ["go", "build", "-o", str(reader), "."],
        cwd=HERE / "go_reader", check=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert not unexplained("go", messages, ours, ask([str(reader)], messages))


@pytest.mark.process
@pytest.mark.needs("node")
def test_node_and_we_differ_only_where_it_is_explained(
    messages: list[bytes], ours: list[str]
) -> None:
    theirs = ask(["node", str(HERE / "node_reader.js")], messages)
    assert not unexplained("node", messages, ours, theirs)
