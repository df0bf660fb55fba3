"""Messages that break the grammar, and that a server may still accept: how the RFCs let it read
them, and what a scenario with them asks for.

Each repair is one that RFC 9110 or 9112 names. The expectations are those of the catalogue's cases.
"""

from __future__ import annotations

import re

import msgspec

from httpmark.harness.http import grammar, request_reader
from httpmark.harness.http.request_reader import Broken, Request
from httpmark.harness.model.cases import Level


class Rule(msgspec.Struct, frozen=True):
    """A rule that a message breaks: its clause, its level, and what a server is asked for."""

    clause: str
    level: Level = Level.SHOULD
    word: str = "REJ"
    framing: bool = False


RULES = {
    Broken.EMPTY_LINE: Rule("RFC 9112 2.2"),
    Broken.LINE: Rule("RFC 9112 3", word="REJ301"),
    Broken.METHOD: Rule("RFC 9112 3.1, RFC 9110 5.6.2"),
    Broken.TARGET: Rule("RFC 9112 3.2", word="REJ301"),
    Broken.AUTHORITY: Rule("RFC 9110 4.2.1, 9.3.6", Level.MUST),
    Broken.VERSION: Rule("RFC 9112 2.3"),
    Broken.MAJOR: Rule("RFC 9110 6.2, 15.6.6", Level.SEC),
    Broken.FIRST_LINE: Rule("RFC 9112 2.2", Level.MUST),
    Broken.FOLD: Rule("RFC 9112 5.2", Level.MUST, "R400"),
    Broken.BARE_LF: Rule("RFC 9112 2.2"),
    Broken.BARE_CR: Rule("RFC 9112 2.2", Level.MUST),
    Broken.COLON: Rule("RFC 9112 5"),
    Broken.SPACE: Rule("RFC 9112 5.1", Level.MUST, "R400"),
    Broken.NAME: Rule("RFC 9112 5, RFC 9110 5.1, 5.6.2"),
    Broken.NUL: Rule("RFC 9110 5.5", Level.MUST),
    Broken.VALUE: Rule("RFC 9110 5.5"),
    Broken.HOST: Rule("RFC 9112 3.2", Level.MUST, "R400"),
    Broken.CONNECT: Rule("RFC 9110 9.3.6", Level.SEC),
    Broken.BOTH: Rule("RFC 9112 6.1", Level.MUST, "REJ; close"),
    Broken.OLD: Rule("RFC 9112 6.1", Level.MUST, "R400C"),
    Broken.CODING: Rule("RFC 9112 6.1, 6.3", Level.MUST, "R400C"),
    Broken.CODINGS: Rule("RFC 9112 6.1, 7.1", word="REJ"),
    Broken.LENGTHS: Rule("RFC 9112 6.3", Level.MUST, "R400C"),
    Broken.LENGTH: Rule("RFC 9112 6.3", Level.MUST, "R400C"),
    Broken.HUGE: Rule("RFC 9110 8.6, RFC 9112 7.1", Level.MUST),
    Broken.SIZE: Rule("RFC 9112 7.1", word="REJ; close", framing=True),
    Broken.CHUNK_CR: Rule("RFC 9112 2.2, 7.1", Level.MUST, "REJ; close", framing=True),
    Broken.DATA_END: Rule("RFC 9112 7.1", word="REJ; close", framing=True),
    Broken.TRAILER: Rule("RFC 9112 7.1.2, 5", word="REJ; close", framing=True),
}
# A reader for whom the message has not ended yet waits for the rest of it.
MAY_WAIT = frozenset(
    {Broken.HUGE, Broken.TRAILER, Broken.BARE_LF, Broken.BARE_CR, Broken.EMPTY_LINE}
)


class Tolerance(msgspec.Struct, frozen=True):
    """How a message that breaks the grammar may be read.

    ``request`` is None where bytes are left over: nobody can say whose they are. ``allows`` is the
    acceptance as a scenario writes it, a *warn*; empty where accepting is as right as refusing.
    """

    octets: bytes
    request: Request | None
    allows: tuple[str, ...] = ()


def broken(octets: bytes) -> Broken | None:
    """The rule that a message breaks, after the repairs that a server may make."""
    return _taken(octets)[2]


def rule(octets: bytes) -> Rule | None:
    """Clause, level and expectation of a broken rule."""
    found = broken(octets)
    return None if found is None else RULES[found]


_LINE = frozenset(
    {Broken.EMPTY_LINE, Broken.LINE, Broken.METHOD, Broken.TARGET, Broken.AUTHORITY,
     Broken.VERSION, Broken.MAJOR}
)  # fmt: skip
_CONTENT = frozenset(
    {Broken.CONNECT, Broken.BOTH, Broken.OLD, Broken.CODING, Broken.CODINGS, Broken.LENGTHS,
     Broken.LENGTH, Broken.HUGE, Broken.SIZE, Broken.CHUNK_CR, Broken.DATA_END, Broken.TRAILER}
)  # fmt: skip


def part(what: Broken) -> str:
    """The part of a message that breaks the rule: request line, field section or content."""
    if what in _LINE:
        return "request line"
    return "content" if what in _CONTENT else "field section"


def tolerance(octets: bytes) -> Tolerance | None:
    """How a message that breaks the grammar may be read; None where it may not be accepted."""
    mended, allows, _ = _taken(octets)
    requests = request_reader.read(mended).requests
    if not requests or not requests[0].whole:
        return None
    is_alone = len(requests) == 1 and requests[0].end == len(mended)
    content = text(requests[0].content(mended))
    demand = f"content? {content}" if content else "empty?"
    return Tolerance(
        mended,
        requests[0] if is_alone else None,
        tuple(allow.replace("CONTENT", demand) for allow in allows),
    )


_REPAIRS_MAX = 4


def _taken(octets: bytes) -> tuple[bytes, tuple[str, ...], Broken | None]:
    """The message after all repairs, the acceptances, and the rule that was broken last."""
    allows: list[str] = []
    last: Broken | None = None
    for _ in range(_REPAIRS_MAX):
        requests = request_reader.read(octets).requests
        found = requests[0].broken if requests else None
        if found is None:
            break
        last = found
        repair = _REPAIRS.get(found)
        if repair is None:
            break
        mended, more = repair(octets)
        if mended == octets:
            break
        octets = mended
        allows += [allow for allow in more if allow not in allows]
    return octets, tuple(allows), last


def text(octets: bytes) -> str:
    """Bytes for any text of a scenario: all but letters and digits are escapes."""
    return "".join(
        chr(octet) if octet in grammar.ALPHANUMERIC else f"\\x{octet:02x}" for octet in octets
    )


_Repaired = tuple[bytes, tuple[str, ...]]
_EMPTY_HOST = re.compile(rb"(?i)\r\nHost:[ \t]*(?::[0-9]*)?[ \t]*\r\n")
_CONTROL = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")
_HEAD_END = re.compile(rb"\r?\n\r?\n")


def _lines_ended(octets: bytes) -> _Repaired:
    """RFC 9112 2.2: empty lines before it are skipped, a LF alone ends a line."""
    octets = octets.lstrip(b"\r\n")
    end = _HEAD_END.search(octets)
    head = end.end() if end else len(octets)
    ended = re.sub(rb"\r?\n", b"\r\n", octets[:head]) + octets[head:]
    # RFC 9110 5.5: in a value it may become SP, too.
    line, end_of_line, fields = octets[:head].partition(b"\r\n")
    spaced = line + end_of_line + re.sub(rb"(?<!\r)\n", b" ", fields) + octets[head:]
    return (spaced if not _is_whole(ended) and _is_whole(spaced) else ended), ()


def _is_whole(octets: bytes) -> bool:
    return any(one.whole for one in request_reader.read(octets).requests[:1])


def _words(octets: bytes) -> _Repaired:
    """RFC 9112 3: words may be separated and surrounded by any whitespace."""
    line, end, rest = octets.partition(b"\r\n")
    words = re.split(rb"[ \t\v\f\r]+", line.strip(b" \t\v\f\r"))
    if len(words) > 3 and (spaced := re.fullmatch(rb"(\S+) ([^ ]+\r[^ ]+) (\S+)", line)):
        # As SP inside the target the line is still broken, but only by the SHOULD of 3.2.
        target = text(spaced[2].replace(b"\r", b" "))
        mended = re.sub(rb"\r", b"", line)
        return mended + end + rest, (f"ACC; target {target}",)
    return (b" ".join(words) + end + rest if len(words) == 3 else octets), ("ACC",)


def _spaces(octets: bytes) -> _Repaired:
    """RFC 9112 2.2, 9110 5.5: a bare CR, or a NUL, becomes SP."""
    end = octets.find(b"\r\n\r\n")
    # As SP, a CR in the empty line is a fold, and the end of the section is yet to come.
    head, rest = (octets[:end], octets[end:]) if end >= 0 else (octets, b"\r\n")
    mended: list[bytes] = []
    demands = ""
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        halves = name.split(b"\r")
        if colon and len(halves) > 1 and all(halves):
            # The name is still broken, and only a SHOULD forbids it; but it stays one name.
            demands += f"; no field {text(halves[-1])}; no field {text(name)}"
            continue
        spaced = re.sub(rb"[\r\x00]", b" ", line)
        mended.append(spaced)
        if colon and spaced != line:
            value = spaced.partition(b":")[2].strip(b" \t")
            demands += f"; field? {text(name)} = {text(value)}"
    return b"\r\n".join(mended) + rest, ("ACC" + demands,)


def _controls(octets: bytes) -> _Repaired:
    """RFC 9110 5.5: other controls may be kept within a safe context."""
    end = octets.find(b"\r\n\r\n")
    # A field value may hold it, but not Host, a length or a coding.
    return re.sub(_CONTROL, b"\xff", octets[:end]) + octets[end:], ("ACC",)


def _unfolded(octets: bytes) -> _Repaired:
    """RFC 9112 5.2: each fold becomes SP."""
    end = octets.find(b"\r\n\r\n")
    return re.sub(rb"[ \t]*\r\n[ \t]+", b" ", octets[:end]) + octets[end:], ()


def _led_lines_dropped(octets: bytes) -> _Repaired:
    """RFC 9112 2.2: lines after the request line that begin with whitespace are ignored."""
    return re.sub(rb"\A([^\r\n]*\r\n)(?:[ \t][^\r\n]*\r\n)+", rb"\1", octets), ()


def _default_host(octets: bytes) -> _Repaired:
    """RFC 9112 3.3: an empty Host means the default. 3.2.2: an absolute URI replaces Host."""
    end = octets.find(b"\r\n\r\n") + 2
    head, rest = octets[:end], octets[end:]
    if b"://" in head.partition(b"\r\n")[0] and b"\nhost:" in head.lower():
        return re.sub(rb"(?i)\r\nHost:[^\r\n]*", b"", head) + b"Host: a\r\n" + rest, ("ACC",)
    return re.sub(_EMPTY_HOST, b"\r\nHost: a\r\n", head) + rest, ()


def _one_length(octets: bytes) -> _Repaired:
    """RFC 9110 8.6, 5.6.1.2: a repeated length counts once, and empty elements do not count."""
    end = octets.find(b"\r\n\r\n") + 2
    found = re.findall(rb"(?i)\r\nContent-Length:([^\r\n]*)", octets[:end])
    values = [one.strip(b" \t") for line in found for one in line.split(b",")]
    values = [one for one in values if one]
    if not values or not all(one.isdigit() and len(one) < 19 for one in values):
        return b"", ()
    if len({int(one) for one in values}) != 1:
        return b"", ()
    rest = re.sub(rb"(?i)\r\nContent-Length:[^\r\n]*", b"", octets[:end])
    return rest + b"Content-Length: " + values[0] + b"\r\n" + octets[end:], ()


def _coding_wins(octets: bytes) -> _Repaired:
    """RFC 9112 6.1: only Transfer-Encoding counts, and the connection is closed."""
    end = octets.find(b"\r\n\r\n") + 2
    rest = re.sub(rb"(?i)\r\nContent-Length:[^\r\n]*", b"", octets[:end])
    rest = re.sub(rb"(?i)(\r\nTransfer-Encoding:[ \t]*chunked)[ \t]*;[^\r\n]*", rb"\1", rest)
    return rest + octets[end:], ("ACC; CONTENT; close",)


def _one_coding(octets: bytes) -> _Repaired:
    """RFC 9110 5.6.1.2: empty elements do not count; no text tells a recipient to refuse chunked
    twice."""
    end = octets.find(b"\r\n\r\n") + 2
    found = re.findall(rb"(?i)\r\nTransfer-Encoding:([^\r\n]*)", octets[:end])
    values = [one.strip(b" \t").lower() for line in found for one in line.split(b",")]
    values = [one for one in values if one]
    if not values or set(values) != {b"chunked"}:
        return b"", ()
    rest = re.sub(rb"(?i)\r\nTransfer-Encoding:[^\r\n]*", b"", octets[:end])
    mended = rest + b"Transfer-Encoding: chunked\r\n" + octets[end:]
    return mended, () if len(values) == 1 else ("ACC; CONTENT",)


def _answered_once(octets: bytes) -> _Repaired:
    """RFC 9112 6.1: one answer, then the close."""
    return re.sub(rb"\A([^\r\n]*)1\.0\r\n", rb"\g<1>1.1\r\n", octets), ("ONE; close",)


_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t\r]+|[ \t\r]*;[^\n]*)")


def _sizes_alone(octets: bytes) -> _Repaired:
    """What follows a chunk size is whitespace, or an extension, which is ignored."""
    at = octets.find(b"\r\n\r\n") + 4
    out = bytearray(octets[:at])
    while (end := octets.find(b"\r\n", at)) >= 0:
        match = _SIZE.fullmatch(octets[at:end])
        line = match[1] if match else octets[at:end]
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", line):
            break
        size = int(line, 16)
        after = end + 2 + (size + 2 if size else 0)
        out += line + octets[end:after]
        at = after
        if not size:
            break
    return bytes(out) + octets[at:], ("ACC; CONTENT",)


def _trailers(octets: bytes) -> _Repaired:
    """Trailer lines as field lines: LF may end one, controls and folds may become SP."""
    # The last chunk; where this is not one, the message is still broken.
    start = octets.rfind(b"\n0")
    section = octets.find(b"\r\n", start) + 2
    before, lines = octets[:section], octets[section:]
    mended = re.sub(rb"\r\n[ \t]+", b" ", re.sub(rb"(?<!\r)\n", b"\r\n", lines))
    spaced = re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)", b" ", mended)
    return before + spaced, () if spaced == mended else ("ACC; CONTENT",)


_REPAIRS = {
    Broken.EMPTY_LINE: _lines_ended,
    Broken.BARE_LF: _lines_ended,
    Broken.LINE: _words,
    Broken.BARE_CR: _spaces,
    Broken.NUL: _spaces,
    Broken.VALUE: _controls,
    Broken.FOLD: _unfolded,
    Broken.FIRST_LINE: _led_lines_dropped,
    Broken.HOST: _default_host,
    Broken.LENGTH: _one_length,
    Broken.LENGTHS: _one_length,
    Broken.BOTH: _coding_wins,
    Broken.CODING: _one_coding,
    Broken.CODINGS: _one_coding,
    Broken.OLD: _answered_once,
    Broken.SIZE: _sizes_alone,
    Broken.CHUNK_CR: _sizes_alone,
    Broken.TRAILER: _trailers,
}
