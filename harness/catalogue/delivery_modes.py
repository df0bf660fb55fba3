"""How the bytes of a case are cut: whole, byte by byte, at boundaries, padded, joined, late.

A server's answer must not depend on where TCP cuts the bytes that it reads. A message goes out
twice in one write first; the answers to all other cuts are compared with those.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import msgspec

from httpmark.harness.model.cases import Await, Case, Family, Op, Step

ONE = "one"  # one write: the answers to all other cuts are compared with the answers to this
MODES = ("byte", "two", "three", "crlf", "buf", "join", "tail")

# Cases of generated families that are part of the corpus: number, and tail of the slug (``%G0``).
VARIATIONS = {"RFC-PCT-PATH": ("-47-30",)}

BYTE_MS = 1
CUT_MS = 5
TAIL_MS = 50
NEAR = 2  # three: both cuts are at most so many bytes from a structural byte
BULK_BYTES = 1024  # content above this is not cut inside
BUFFER_BYTES = 4096
BUFFERS = (1, 2, 4)
PAD_LINE_BYTES = 1000
PAD = b"X-Pad-"

_PAD_MIN = len(PAD) + len(b"00: a\r\n")
_HOST = re.compile(rb"(?i)\r\nhost:[^\r\n]*\r\n(?:[ \t][^\r\n]*\r\n)*")  # with its folded lines
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_LENGTH_FIELD = re.compile(rb"(?i)\ncontent-length[ \t]*:([^\r\n]*)")
_CHUNKED = re.compile(rb"(?i)\ntransfer-encoding[ \t]*:[^\n]*chunked")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]+)[^\n]*\n")
_STRUCTURE = re.compile(rb"[\r\n:%; ]")


# --- which cases, and their bytes ---------------------------------------------------------------


def is_delivered(family: Family, case: str) -> bool:
    """Whether a case is part of the delivery corpus."""
    if not family.generated:
        return family.deliver
    tails = [tail for ref in family.refs for tail in VARIATIONS.get(ref, ())]
    return any(case == family.id + tail for tail in tails)


def message(case: Case) -> bytes:
    """The case's own bytes, without its canary and without what would complete it."""
    octets = b"".join(s.data for s in case.steps if s.op is Op.SEND and not s.if_unanswered)
    return octets if case.joined or not case.canary else octets.removesuffix(case.canary)


def _waits_and_canary(case: Case) -> tuple[list[Step], list[Step]]:
    """The waits of a case for its answers, and the steps that send its canary."""
    steps = list(case.steps)
    tail: list[Step] = []
    if case.canary and not case.joined:
        while steps and steps[-1].data != case.canary:
            tail.insert(0, steps.pop())
        tail.insert(0, steps.pop())
        if steps[-1].op is Op.WATCH:
            tail.insert(0, steps.pop())
    waits = [
        step
        for step in steps
        if step.op is Op.AWAIT
        and step.kind not in (Await.LOOK_FINAL, Await.LOOK_ANY)
        and not step.if_unanswered
    ]
    return waits, tail


def _cut(
    case: Case, pieces: list[bytes], name: str, pause_ms: int = 0, *, stop: bool = False
) -> Case:
    """The case in pieces; ``stop`` ends the writing with the first final answer."""
    waits, tail = _waits_and_canary(case)
    steps = [Step(Op.SEND, pieces[0])]
    for piece in pieces[1:]:
        steps.append(Step(Op.PAUSE, wait_ms=pause_ms))
        steps.append(Step(Op.SEND, piece, if_open=True, if_unanswered=stop))
    return _played(case, [*steps, *waits, *tail], name)


def _played(case: Case, steps: list[Step], name: str) -> Case:
    return msgspec.structs.replace(
        case,
        steps=tuple(steps),
        deadline_ms=sum(step.wait_ms for step in steps) + 1000,
        timeline=True,
        delivery=name,
    )


def one(case: Case) -> Case:
    """The case in one write."""
    return _cut(case, [message(case)], ONE)


def one_of(case: Case, octets: bytes, name: str) -> Case:
    """The case with other bytes, in one write."""
    return _cut(case, [octets], name)


# --- where a message may be cut ------------------------------------------------------------------


def head_end(octets: bytes, start: int = 0) -> int:
    """Where the header section ends for a reader that takes LF as a line end, too; else -1.

    Empty lines before the request line do not end it.
    """
    at = start
    while octets[at : at + 1] in (b"\r", b"\n"):
        at += 1
    found = _HEAD_END.search(octets, at)
    return -1 if found is None else found.end()


def _chunks(octets: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Where the size of each chunk begins and ends, and where its data does."""
    at = head_end(octets)
    if at < 0 or not _CHUNKED.search(octets[:at]):
        return
    while found := _CHUNK_LINE.match(octets, at):
        size = int(found[1], 16)
        if found.end() + size > len(octets):
            yield found.start(1), found.end(1), found.end(), found.end()
            return
        yield found.start(1), found.end(1), found.end(), found.end() + size
        if size == 0:
            return
        at = found.end() + size + 2


def bulk(octets: bytes) -> list[tuple[int, int]]:
    """Parts of the content above 1 KiB, which are not cut."""
    found = [(data, end) for _, _, data, end in _chunks(octets) if end - data > BULK_BYTES]
    head = head_end(octets)
    if found or head < 0 or len(octets) - head <= BULK_BYTES:
        return found
    by_length = _LENGTH_FIELD.search(octets[:head]) and not _CHUNKED.search(octets[:head])
    return [(head, len(octets))] if by_length else []


def cuts(octets: bytes) -> list[int]:
    """Every place between two bytes, except deep inside bulk content."""
    near = NEAR
    inside = bulk(octets)
    return [
        at
        for at in range(1, len(octets))
        if not any(start + near < at < end - near for start, end in inside)
    ]


def structure(octets: bytes) -> list[int]:
    """The offsets of CR, LF, colon, SP, percent, semicolon and the digits of lengths, in order."""
    found = {match.start() for match in _STRUCTURE.finditer(octets)}
    for field in _LENGTH_FIELD.finditer(octets):
        found |= {field.start(1) + digit.start() for digit in re.finditer(rb"[0-9]", field[1])}
    for start, end, _, _ in _chunks(octets):
        found |= set(range(start, end))
    inside = bulk(octets)
    return sorted(at for at in found if not any(start <= at < end for start, end in inside))


def pairs(octets: bytes) -> list[tuple[int, int]]:
    """Every pair of cuts that are both within two bytes of the same structural byte."""
    possible = set(cuts(octets))
    found: set[tuple[int, int]] = set()
    for at in structure(octets):
        near = [cut for cut in range(at - NEAR, at + NEAR + 1) if cut in possible]
        found |= set(itertools.combinations(near, 2))
    return sorted(found)


def _split(octets: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *at, len(octets)]
    return [octets[start:end] for start, end in itertools.pairwise(edges)]


def padding(octets: int) -> bytes:
    """Field lines of so many bytes in all, at most 1000 each, each with a name of its own.

    :raises ValueError: too few for one line.
    """
    if octets < _PAD_MIN:
        raise ValueError(f"no field line has {octets} bytes")
    lines = []
    left = octets
    for number in itertools.count():
        size = min(left, PAD_LINE_BYTES)
        if 0 < left - size < _PAD_MIN:
            size -= _PAD_MIN
        name = PAD + b"%02d: " % number
        lines.append(name + b"a" * (size - len(name) - 2) + b"\r\n")
        left -= size
        if left == 0:
            return b"".join(lines)
    raise AssertionError


def padded(octets: bytes, offset: int, at: int) -> bytes | None:
    """The message with fields after its Host line that move the byte ``at`` to ``offset``.

    None where there is no Host line before that byte, or too little room.
    """
    host = _HOST.search(octets)
    if host is None or at < host.end() or offset - at < _PAD_MIN:
        return None
    return octets[: host.end()] + padding(offset - at) + octets[host.end() :]


# --- the seven modes -----------------------------------------------------------------------------


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What came back for one write of a message, as far as the other cuts depend on it."""

    refused: bool = False  # its first final answer was a 4xx or 5xx
    stays_open: bool = True
    before: bytes = b""  # a whole request with content, which the message follows in the same write
    buffers: tuple[int, ...] = BUFFERS  # how many buffers of padding the server takes


def deliveries(case: Case, mode: str, known: Known) -> Iterator[Case]:
    """The case in every cut of a mode; ``Case.delivery`` names the cut, the id stays the same.

    :raises KeyError: no such mode.
    """
    yield from _MODES[mode](case, known)


def _byte(case: Case, known: Known) -> Iterator[Case]:
    octets = message(case)
    inside = bulk(octets)
    at = [
        cut for cut in range(1, len(octets)) if not any(start < cut < end for start, end in inside)
    ]
    yield _cut(case, _split(octets, at), "byte", BYTE_MS, stop=known.refused)


def _two(case: Case, known: Known) -> Iterator[Case]:
    octets = message(case)
    for at in cuts(octets):
        yield _cut(case, _split(octets, [at]), f"two@{at}", CUT_MS, stop=known.refused)


def _three(case: Case, known: Known) -> Iterator[Case]:
    octets = message(case)
    for a, b in pairs(octets):
        yield _cut(case, _split(octets, [a, b]), f"three@{a}+{b}", CUT_MS, stop=known.refused)


def _crlf(case: Case, known: Known) -> Iterator[Case]:
    octets = message(case)
    inside = bulk(octets)
    at = [
        match.start() + 1
        for match in re.finditer(rb"\r\n", octets)
        if not any(start < match.start() + 1 < end for start, end in inside)
    ]
    if at:
        yield _cut(case, _split(octets, at), "crlf", CUT_MS, stop=known.refused)


def _buf(case: Case, known: Known) -> Iterator[Case]:
    octets = message(case)
    for count, shift in itertools.product(known.buffers, (-1, 0, 1)):
        for at in structure(octets):
            moved = padded(octets, count * BUFFER_BYTES + shift, at)
            if moved is not None:
                name = f"buf@{count * BUFFER_BYTES}{shift:+d}:{at}"
                yield _cut(case, [moved], name)


def _join(case: Case, known: Known) -> Iterator[Case]:
    octets = message(case)
    waits, tail = _waits_and_canary(case)
    again = waits if known.stays_open else []
    twice = [Step(Op.SEND, octets + octets), *waits, *again, *tail]
    yield msgspec.structs.replace(_played(case, twice, "join"), methods=case.methods * 2)
    if known.before:
        glued = [Step(Op.SEND, known.before + octets), Step(Op.AWAIT, wait_ms=waits[0].wait_ms)]
        made = _played(case, [*glued, *waits, *tail], "join@content")
        yield msgspec.structs.replace(made, methods=(b"POST", *case.methods))


def _tail(case: Case, known: Known) -> Iterator[Case]:
    octets = message(case)
    yield _cut(case, [octets[:-1], octets[-1:]], "tail", TAIL_MS, stop=known.refused)


_MODES: dict[str, Callable[[Case, Known], Iterator[Case]]] = {
    "byte": _byte,
    "two": _two,
    "three": _three,
    "crlf": _crlf,
    "buf": _buf,
    "join": _join,
    "tail": _tail,
}


def mode_of(delivery: str) -> str:
    """The mode a cut belongs to: ``two`` of ``two@17``."""
    return delivery.partition("@")[0]
