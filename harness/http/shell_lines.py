"""Lines of shell that send an exchange again, by hand or with ``httpmark``.

A line by hand says how the connection ended, and waits as long for it as the case does.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence

import msgspec

from httpmark.harness.http import request_reader
from httpmark.harness.http.address import endpoint, url
from httpmark.harness.http.printable import escaped
from httpmark.harness.model.cases import Facts, Op, Step
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.timeline import EventKind, events

LINE_CHARACTERS_MAX = 600  # a longer line of shell is hard to read and to copy
WAIT_S = 2  # for an answer or a close, where a case does not wait longer
_APART_S = 0.3  # between two writes, so that they arrive as two


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
    steps = _steps(exchange, with_canary=with_canary)
    where = place(facts)
    line = again(steps, where, wait_s=max(WAIT_S, math.ceil(exchange.end_us / 1e6)))
    return line if line is not None and len(line) <= LINE_CHARACTERS_MAX else None


def again(steps: Sequence[Step], where: Place, *, wait_s: int = WAIT_S) -> str | None:
    """The one line that plays some steps; None where no line can: a half-close over TLS, a reset.

    :param wait_s: how long to wait after the last step.
    """
    acts = {step.op for step in steps}
    if Op.RESET in acts or (Op.FIN in acts and where.tls):
        return None
    if acts == {Op.SEND} and len(steps) == 1:
        return piped(steps[0].data, where, wait_s=wait_s)
    return scripted(steps, where, wait_s=wait_s)


def waited_s(steps: Sequence[Step]) -> int:
    """How long a case waits in its last steps, in whole seconds: for one answer, then a close."""
    answers = max((step.wait_ms for step in steps if step.op is Op.AWAIT), default=0)
    ends = max((step.wait_ms for step in steps if step.op is not Op.AWAIT), default=0)
    return max(WAIT_S, math.ceil((answers + ends - _SETTLES_MS) / 1000))


_SETTLES_MS = 100  # a look at what else comes, which nobody has to wait for


def fewer(whole: Exchange, small: Exchange) -> str:
    """How many bytes of a case were enough."""
    return f"{len(own(small))} of {len(own(whole))} bytes do the same"


def _steps(exchange: Exchange, *, with_canary: bool) -> list[Step]:
    """What was done on the connection: writes, the time between them, a half-close.

    The request after the case, which shows how far the server had read, needs no write of its own.
    """
    steps: list[Step] = []
    rest, answered, at_us = exchange.sent, False, 0
    for event in events(exchange.timeline):
        if event.kind is EventKind.RECEIVED:
            answered = True
        if event.kind not in (EventKind.SENT, EventKind.OWN_FIN):
            continue
        wait_ms = (event.at_us - at_us) // 1000
        if steps and answered:
            steps.append(Step(Op.AWAIT, wait_ms=max(WAIT_S * 1000, wait_ms)))
        elif steps and wait_ms > _APART_S * 1000:
            steps.append(Step(Op.PAUSE, wait_ms=wait_ms))
        if event.kind is EventKind.SENT:
            steps.append(Step(Op.SEND, rest[: event.octets]))
            rest = rest[event.octets :]
        else:
            steps.append(Step(Op.FIN))
        answered, at_us = False, event.at_us
    if rest:
        steps.append(Step(Op.SEND, rest))
    return _without_canary(steps, with_canary=with_canary)


def _without_canary(steps: list[Step], *, with_canary: bool) -> list[Step]:
    """The steps with the request after the case as part of the write before it, or without it."""
    at = [number for number, step in enumerate(steps) if step.op is Op.SEND]
    while len(at) > 1 and _CANARY.match(steps[at[-1]].data):
        last, before = at.pop(), at[-1]
        data = steps[before].data + (steps[last].data if with_canary else b"")
        steps[before] = Step(Op.SEND, data)
        steps[before + 1 : last + 1] = []
    return steps


_CANARY = re.compile(rb"GET [^ ]*canary-")


def own(exchange: Exchange) -> bytes:
    """What a case sent, without the request after it."""
    found = re.search(_CANARY.pattern + re.escape(exchange.case.encode("latin-1")), exchange.sent)
    return exchange.sent if found is None else exchange.sent[: found.start()]


# How printf is told of each byte that it would not print as it stands.
_ESCAPES = {octet: f"\\{octet:03o}" for octet in range(256) if not 0x20 <= octet < 0x7F}
_ESCAPES |= {0x0D: "\\r", 0x0A: "\\n", 0x5C: "\\\\", 0x25: "%%", 0x27: "\\047"}


def piped(octets: bytes, where: Place, *, wait_s: int = WAIT_S) -> str:
    """One write: ``printf``, and a client that sends bytes as they are.

    ``nc`` closes nothing at the end of what it sends: with ``-q`` or ``-N`` it would half-close,
    which is another case. Its last line says whether the server closed.
    """
    text = octets.decode("latin-1").translate(_ESCAPES)
    if text.startswith("-"):
        text = "\\055" + text[1:]  # else printf takes it for an option
    if where.unix is not None:
        client = f"nc -U {shlex.quote(where.unix)}"
    elif where.tls:
        there = shlex.quote(endpoint(where.address, where.port))
        client = f"openssl s_client -quiet -connect {there}"
    else:
        client = f"nc {shlex.quote(where.address)} {where.port}"
    ended = f"printf '\\n[%d] 0: closed, 124: open after {wait_s} s\\n' $?"
    return f"printf '{text}' | timeout {wait_s} {client}; {ended}"


def scripted(steps: Sequence[Step], where: Place, *, wait_s: int = WAIT_S) -> str:
    """Several writes with waits between them, or a half-close: one line of Python.

    It prints what comes, then ``closed`` or why it stopped waiting.
    """
    if where.unix is not None:
        opened = f"s = socket.socket(socket.AF_UNIX); s.connect({_literal(where.unix)})"
    else:
        opened = f"s = socket.create_connection(({_literal(where.address)}, {where.port}))"
    said = [
        "sys.excepthook = lambda kind, why, at: print(why)",
        opened,
        *(["s = ssl._create_unverified_context().wrap_socket(s)"] if where.tls else []),
        f"s.settimeout({wait_s})",
        *_played(steps),
        '[print(x) for x in iter(lambda: s.recv(65536), b"")]',
        'print("closed")',
    ]
    modules = [
        name for name in ("select", "socket", "ssl", "sys", "time")
        if any(f"{name}." in one for one in said)
    ]  # fmt: skip
    return "python3 -c " + shlex.quote("; ".join([f"import {', '.join(modules)}", *said]))


def _literal(value: bytes | str) -> str:
    """A value as Python writes it, in double quotes where it can be: the shell has the single
    ones."""
    if '"' in (value.decode("latin-1") if isinstance(value, bytes) else value):
        return repr(value)
    prefix = "b" if isinstance(value, bytes) else ""
    # With a single quote in it, Python itself chooses double ones.
    whole = repr(b"'" + value if isinstance(value, bytes) else "'" + value)
    return f'{prefix}"{whole[len(prefix) + 2 :]}'


def _played(steps: Sequence[Step]) -> list[str]:
    """Steps as statements of Python; the wait after the last one is that of the socket."""
    acts = [number for number, step in enumerate(steps) if step.op in (Op.SEND, Op.FIN)]
    played = steps[: acts[-1] + 1] if acts else ()
    lines: list[str] = []
    for number, step in enumerate(played):
        match step.op:
            case Op.SEND:
                if number and played[number - 1].op is Op.SEND:
                    lines.append(f"time.sleep({_APART_S})")
                lines.append(f"s.sendall({_literal(step.data)})")
            case Op.FIN:
                lines.append("s.shutdown(1)")
            case Op.AWAIT:
                come = f"select.select([s], [], [], {max(step.wait_ms / 1000, _APART_S):g})[0]"
                lines.append(f"{come} and print(s.recv(65536))")
            case _:
                seconds = max(math.ceil(step.wait_ms / 100) / 10, _APART_S)
                lines.append(f"time.sleep({seconds:g})")
    return lines


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
