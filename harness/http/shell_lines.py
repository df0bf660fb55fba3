"""Lines of shell that send an exchange again, by hand or with ``httpmark``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import msgspec

from httpmark.harness.http import request_reader
from httpmark.harness.http.address import endpoint, url
from httpmark.harness.http.printable import escaped
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.timeline import EventKind, events

LINE_CHARACTERS_MAX = 500  # a longer line of shell is hard to read and to copy


class Place(msgspec.Struct, frozen=True):
    """Where bytes are sent by hand; ``HOST`` and ``PORT`` where that is not known."""

    address: str = "HOST"
    port: int | str = "PORT"
    tls: bool = False
    unix: str | None = None  # the path of a Unix socket, instead of address and port


def place(facts: Facts | None) -> Place:
    """Where a server listens, as its stored facts say."""
    if facts is None or facts.address is None:
        return Place()
    return Place(facts.address, facts.port, facts.scheme == "https", facts.unix)


def by_hand(exchange: Exchange, facts: Facts | None, *, with_canary: bool = True) -> str | None:
    """One line of shell that sends what an exchange sent, to where it was sent.

    None where no line can say it, or only one that is too long to copy: a half-close over TLS.

    :param with_canary: send the request after the case, too.
    """
    writes, half_close = _writes(exchange, with_canary=with_canary)
    where = place(facts)
    if half_close and where.tls:
        return None
    line = (
        piped(writes[0], where)
        if len(writes) == 1 and not half_close
        else scripted(*writes, where=where, half_close=half_close)
    )
    return line if len(line) <= LINE_CHARACTERS_MAX else None


def fewer(whole: Exchange, small: Exchange) -> str:
    """How many bytes of a case were enough."""
    return f"{len(own(small))} of {len(own(whole))} bytes do the same"


def _writes(exchange: Exchange, *, with_canary: bool) -> tuple[list[bytes], bool]:
    """What each write held, and whether a half-close came last.

    The request after the case, which shows how far the server had read, needs no write of its own.
    """
    recorded = events(exchange.timeline)
    writes: list[bytes] = []
    rest = exchange.sent
    for number in [event.octets for event in recorded if event.kind is EventKind.SENT]:
        writes.append(rest[:number])
        rest = rest[number:]
    writes += [rest] if rest else []
    while len(writes) > 1 and _CANARY.match(writes[-1]):
        last = writes.pop()
        writes[-1] += last if with_canary else b""
    return writes, any(event.kind is EventKind.OWN_FIN for event in recorded)


_CANARY = re.compile(rb"GET [^ ]*canary-")


def own(exchange: Exchange) -> bytes:
    """What a case sent, without the request after it."""
    found = re.search(_CANARY.pattern + re.escape(exchange.case.encode("latin-1")), exchange.sent)
    return exchange.sent if found is None else exchange.sent[: found.start()]


# How printf is told of each byte that it would not print as it stands.
_ESCAPES = {octet: f"\\{octet:03o}" for octet in range(256) if not 0x20 <= octet < 0x7F}
_ESCAPES |= {0x0D: "\\r", 0x0A: "\\n", 0x5C: "\\\\", 0x25: "%%", 0x27: "\\047"}


def piped(octets: bytes, where: Place) -> str:
    """One write: ``printf``, and a client that sends bytes as they are."""
    text = octets.decode("latin-1").translate(_ESCAPES)
    if text.startswith("-"):
        text = "\\055" + text[1:]  # else printf takes it for an option
    if where.unix is not None:
        client = f"nc -q 2 -U {shlex.quote(where.unix)}"
    elif where.tls:
        there = shlex.quote(endpoint(where.address, where.port))
        client = f"openssl s_client -quiet -connect {there}"
    else:
        client = f"nc -q 2 {shlex.quote(where.address)} {where.port}"
    return f"printf '{text}' | {client}"


def scripted(*writes: bytes, where: Place, half_close: bool = False) -> str:
    """Several writes with pauses between them, or a half-close: one line of Python."""
    modules = ["socket", *(["ssl"] if where.tls else []), *(["time"] if len(writes) > 1 else [])]
    if where.unix is not None:
        opened = f"s = socket.socket(socket.AF_UNIX); s.connect({where.unix!r}); "
    else:
        opened = f"s = socket.create_connection(({where.address!r}, {where.port})); "
    if where.tls:
        opened += "s = ssl._create_unverified_context().wrap_socket(s); "
    pauses = "; time.sleep(0.3); ".join(f"s.sendall({octets!r})" for octets in writes)
    sent = f"{pauses}; " if writes else ""
    shut = "s.shutdown(1); " if half_close else ""
    return "python3 -c " + shlex.quote(
        f"import {', '.join(modules)}; {opened}{sent}{shut}s.settimeout(2); print(s.recv(65536))"
    )


def command(
    case: str, suite: str, again: Sequence[str], *, is_played: bool = False, delivery: str = ""
) -> str:
    """The ``httpmark`` command that sends the same case to the same server, with the same options.

    It is ``replay``, or ``check`` where ``replay`` cannot: to start a server, or to run a program.

    :param again: ``ServerResult.again``; empty where no target is known.
    :param delivery: how the bytes are cut; empty for one write. ``check`` tries every delivery.
    """
    again = again or ("TARGET",)
    if again[0] == "--serve" or is_played:
        full = ("--full",) * bool(delivery)
        return shlex.join(("httpmark", "check", *again, "--suite", suite, "--case", case, *full))
    cut = ("--delivery", delivery) if delivery else ()
    return shlex.join(("httpmark", "replay", case, *again, *cut))


def commented(line: str) -> str:
    """A line of shell for a comment in a file: a line end in it would end the comment."""
    return line if line.isprintable() else escaped(line.encode())


_CURL_FIELDS = re.compile(rb"[ -~]*")


def curl(message: bytes, *, address: str, port: int | str) -> str | None:
    """One line of ``curl`` that sends a message; None unless that is one whole, valid request in
    printable characters."""
    read = request_reader.read(message)
    if len(read.requests) != 1 or read.certain != len(message):
        return None
    [request] = read.requests
    if not (request.valid and request.whole) or request.target[:1] != b"/" or request.minor != 1:
        return None
    head, _, content = message.partition(b"\r\n\r\n")
    fields = [line for line in head.split(b"\r\n")[1:] if line]
    names = [line.partition(b":")[0].lower() for line in fields]
    if b"transfer-encoding" in names or not all(map(_CURL_FIELDS.fullmatch, (*fields, content))):
        return None
    kept = [
        line.decode() for line, name in zip(fields, names, strict=True)
        if name not in (b"host", b"content-length")
    ]  # fmt: skip
    method = request.method.decode("latin-1")
    words = ["curl", "-i", "--path-as-is", "-H", "User-Agent:", "-H", "Accept:"]
    words += ["-I"] if method == "HEAD" else [] if method == "GET" else ["-X", method]
    for line in kept:
        # An empty value ends in a semicolon there: a colon would take the field away.
        name, _, value = line.partition(":")
        words += ["-H", line if value.strip() else f"{name};"]
    if b"content-length" in names:
        words += ["-H", "Content-Type:", "--data-binary", content.decode()]
    words.append(url(address, port, request.target.decode("latin-1"), tls=False))
    return " ".join(shlex.quote(word) for word in words)
