"""Octets as people read them, and as a shell sends them again. What comes from a server is hostile:
it reaches a page only through here, the template's escaping, or the JSON block's.
"""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

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


def reproducer(sent: bytes) -> str:
    """One line of shell that sends the same octets again, to the host the request names."""
    escapes = {0x0D: "\\r", 0x0A: "\\n", 0x5C: "\\\\", 0x25: "%%", 0x27: "\\047"}
    text = "".join(
        escapes.get(octet, chr(octet) if 0x20 <= octet < 0x7F else f"\\{octet:03o}")
        for octet in sent
    )
    host, port = "127.0.0.1", "8080"
    for line in sent.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        found_host, colon, found_port = value.strip().decode("latin-1").rpartition(":")
        if name.lower() == b"host" and colon and found_port.isascii() and found_port.isdigit():
            if found_host.replace(".", "").replace("-", "").isalnum() and found_host.isascii():
                host, port = found_host, found_port
            break
    if text.startswith("-"):
        text = "\\055" + text[1:]  # else printf takes it for an option
    return f"printf '{text}' | nc -q 2 {host} {port}"
