"""Octets as people read them, and as a shell sends them again. What comes from a server is hostile:
it reaches a page only through here, the template's escaping, or the JSON block's.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Sequence

import msgspec
from markupsafe import Markup, escape

from httpmark.harness.model import timeline
from httpmark.harness.model.cases import (
    Facts,
)
from httpmark.harness.model.exchanges import Exchange

LINE_CHARACTERS_MAX = 500  # of shell: nobody copies more with an easy mind
RECEIVED_OCTETS_MAX = 200

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def visible(text: str) -> str:
    """Text with every control, bidirectional and surrogate character shown as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in _UNSEEN
        else f"\\u{ord(character):04x}"
        for character in text
    )


def wire(octets: bytes, *, limit: int = RECEIVED_OCTETS_MAX) -> Markup:
    """Octets as one reads them: printable ASCII as itself, the rest as marked escapes.

    CR LF is a new line and nothing else is; a CR or an LF alone is marked.
    """
    parts: list[str] = []
    marked = False

    def mark(on: bool) -> None:
        nonlocal marked
        if on != marked:
            parts.append("<b>" if on else "</b>")
            marked = on

    shown = octets[:limit]
    ends = 0  # of a line that is already written
    for at, octet in enumerate(shown):
        if at < ends:
            continue
        if shown[at : at + 2] == b"\r\n":
            mark(False)
            parts.append("\n")
            ends = at + 2
            continue
        if 0x20 <= octet < 0x7F and octet != 0x5C:
            mark(False)
            parts.append(str(escape(chr(octet))))
            continue
        mark(True)
        parts.append({9: "\\t", 10: "\\n", 13: "\\r", 0x5C: "\\\\"}.get(octet, f"\\x{octet:02x}"))
    mark(False)
    if len(octets) > limit:
        parts.append(f"\n… {len(octets) - limit:,} more octets")
    return Markup("".join(parts))  # every piece above is escaped or our own


class Place(msgspec.Struct, frozen=True):
    """Where octets are sent by hand; the words as they stand where that is not known."""

    address: str = "HOST"
    port: int | str = "PORT"
    tls: bool = False
    unix: str | None = None  # the path of a Unix socket, instead of address and port


def place(facts: Facts | None) -> Place:
    """Where a server listens by what is stored of it."""
    if facts is None or facts.address is None:
        return Place()
    return Place(facts.address, facts.port, facts.scheme == "https", facts.unix)


def by_hand(exchange: Exchange, facts: Facts | None, *, with_canary: bool = True) -> str | None:
    """One line of shell that sends what an exchange sent, to where it was sent.

    None where no line that one would copy can: it is too long, or a half-close over TLS.

    :param with_canary: and the request after the case.
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
    """How many octets of a case were enough."""
    return f"{len(own(small))} of {len(own(whole))} octets do the same"


def _writes(exchange: Exchange, *, with_canary: bool) -> tuple[list[bytes], bool]:
    """What went out in one go each, and whether a half-close came last.

    The request after the case, which shows how far the server had read, needs no go of its own.
    """
    events = timeline.events(exchange.timeline)
    writes: list[bytes] = []
    rest = exchange.sent
    for number in [event.octets for event in events if event.kind == timeline.SENT]:
        writes.append(rest[:number])
        rest = rest[number:]
    writes += [rest] if rest else []
    while len(writes) > 1 and _CANARY.match(writes[-1]):
        last = writes.pop()
        writes[-1] += last if with_canary else b""
    return writes, any(event.kind == timeline.OWN_FIN for event in events)


_CANARY = re.compile(rb"GET [^ ]*canary-")


def own(exchange: Exchange) -> bytes:
    """What a case sent, without the request after it."""
    found = re.search(_CANARY.pattern + re.escape(exchange.case.encode("latin-1")), exchange.sent)
    return exchange.sent if found is None else exchange.sent[: found.start()]


def piped(octets: bytes, where: Place) -> str:
    """printf, and a client of bare octets."""
    escapes = {0x0D: "\\r", 0x0A: "\\n", 0x5C: "\\\\", 0x25: "%%", 0x27: "\\047"}
    text = "".join(
        escapes.get(octet, chr(octet) if 0x20 <= octet < 0x7F else f"\\{octet:03o}")
        for octet in octets
    )
    if text.startswith("-"):
        text = "\\055" + text[1:]  # else printf takes it for an option
    if where.unix is not None:
        client = f"nc -q 2 -U {shlex.quote(where.unix)}"
    elif where.tls:
        host = f"[{where.address}]" if ":" in where.address else where.address
        client = f"openssl s_client -quiet -connect {shlex.quote(f'{host}:{where.port}')}"
    else:
        client = f"nc -q 2 {shlex.quote(where.address)} {where.port}"
    return f"printf '{text}' | {client}"


def scripted(*writes: bytes, where: Place, half_close: bool = False) -> str:
    """Python alone, for several writes with time between them, and for a half-close."""
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
    """The command that asks the same server for the same case, with the same options.

    ``replay`` cannot start a server, nor play what a program plays: ``check`` does.

    :param again: ``ServerResult.again``; nothing where no target is known.
    :param delivery: how its octets are cut; nothing for one write. ``check`` cuts in every way.
    """
    again = again or ("TARGET",)
    if again[0] == "--serve" or is_played:
        full = ("--full",) * bool(delivery)
        return shlex.join(("httpmark", "check", *again, "--suite", suite, "--case", case, *full))
    cut = ("--delivery", delivery) if delivery else ()
    return shlex.join(("httpmark", "replay", case, *again, *cut))


_SHOWN_OCTETS = 2048


def escaped(text: bytes) -> str:
    """Octets as text that can be told apart: escapes as scenario files write them."""
    named = {0x0D: "\\r", 0x0A: "\\n", 0x09: "\\t", 0x5C: "\\x5c"}
    return "".join(
        named.get(octet) or (chr(octet) if 0x20 <= octet < 0x7F else f"\\x{octet:02x}")
        for octet in text
    )


def escaped_lines(message: bytes) -> str:
    """The same, a line of the message on each line."""
    shown = message[:_SHOWN_OCTETS]
    text = escaped(shown).replace("\\r\\n", "\\r\\n\n").rstrip("\n")
    rest = len(message) - len(shown)
    return text + (f"\n... and {rest} octets more" if rest else "")
