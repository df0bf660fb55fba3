"""One-byte deviations of a sample: each byte deleted, doubled, replaced by one of each class.

A sample is a line with parts. A part that repeats bytes of a set stands for all its lengths, so a
deviation has a pattern that finds it in the bytes of any case, and not only in the sample's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from httpmark.harness.http import grammar

DELETED, DOUBLED = "deleted", "doubled"


class Part(msgspec.Struct, frozen=True):
    """A part of a sample. ``octets`` are its bytes.

    ``around`` is the pattern of a part that is given and not deviated from. ``of`` is the set that
    a part repeats. A part with neither is fixed.
    """

    name: str
    octets: bytes
    around: bytes | None = None
    of: frozenset[int] | None = None
    any_case: bool = False

    @property
    def pattern(self) -> bytes:
        """What the part looks like in any valid message."""
        if self.around is not None:
            return self.around
        if self.of is not None:
            return _one_of(self.of) + b"+"
        return b"(?i:" + re.escape(self.octets) + b")" if self.any_case else re.escape(self.octets)


class Deviation(msgspec.Struct, frozen=True):
    """One deviation: where, how, and the sample with it."""

    place: str
    kind: str  # DELETED, DOUBLED, or the name of a class of bytes
    octets: bytes
    at: int  # the offset in the sample

    @property
    def text(self) -> str:
        return (
            f"{self.place} {self.kind}"
            if self.kind in (DELETED, DOUBLED)
            else f"{self.place} replaced by {self.kind}"
        )


class Search(msgspec.Struct, frozen=True):
    """Finds the deviations of one place in any bytes; group 1 of the pattern deviates.

    ``found`` says by the byte in group 1 which deviation it is. ``mended`` are the bytes with which
    group 1 is replaced to have a valid message: one of them does.
    """

    pattern: re.Pattern[bytes]
    found: dict[bytes, Deviation]
    mended: tuple[bytes, ...]


def searches(parts: tuple[Part, ...], valid: re.Pattern[bytes]) -> Iterator[Search]:
    """What finds the deviations of a sample. Those that are valid, too, are left out.

    :param valid: matches the sample, and all that the rule allows in its place.
    """
    sample = b"".join(part.octets for part in parts)
    assert valid.fullmatch(sample), sample
    start = 0
    for number, part in enumerate(parts):
        before = b"".join(one.pattern for one in parts[:number])
        after = b"".join(one.pattern for one in parts[number + 1 :])
        if part.around is None:
            for place, at, left, right in _places(part):
                yield from _at_place(
                    _Place(place, sample, start + at, before + left, right + after, part), valid
                )
        start += len(part.octets)


class _Place(msgspec.Struct, frozen=True):
    name: str
    sample: bytes
    at: int
    before: bytes  # patterns
    after: bytes
    part: Part


def _places(part: Part) -> Iterator[tuple[str, int, bytes, bytes]]:
    """The places of a part: name, offset, and the patterns of what stands on both sides."""
    last = len(part.octets) - 1
    if part.of is None:
        for at in range(last + 1):
            sides = [
                msgspec.structs.replace(part, octets=side).pattern
                for side in (part.octets[:at], part.octets[at + 1 :])
            ]
            yield f"{part.name}.{at + 1}" if last else part.name, at, sides[0], sides[1]
    elif not last:
        yield part.name, 0, b"", b""
    else:
        assert last >= 2, f"{part.name}: a part that repeats has one byte, or three and more"
        repeated = part.pattern
        yield f"{part.name}.first", 0, b"", repeated
        yield f"{part.name}.middle", 1, repeated, repeated
        yield f"{part.name}.last", last, repeated, b""


def _at_place(place: _Place, valid: re.Pattern[bytes]) -> Iterator[Search]:
    head, tail = place.sample[: place.at], place.sample[place.at + 1 :]
    own = place.sample[place.at : place.at + 1]
    found: dict[bytes, Deviation] = {}
    for name, octets in grammar.BYTE_CLASSES.items():
        invalid = [
            octet for octet in sorted(octets) if not valid.fullmatch(head + bytes((octet,)) + tail)
        ]
        if invalid:
            shown = head + bytes(invalid[:1]) + tail
            one = Deviation(place.name, name, shown, place.at)
            found |= {bytes((octet,)): one for octet in invalid}
    if found:
        deviating = _one_of(frozenset(octet[0] for octet in found))
        yield Search(_compiled(place, b"(" + deviating + b")"), found, (own, b""))
    if not valid.fullmatch(head + tail):
        gone = Deviation(place.name, DELETED, head + tail, place.at)
        yield Search(_compiled(place, b"()"), {b"": gone}, (own,))
    if not valid.fullmatch(head + own + own + tail):
        twice = Deviation(place.name, DOUBLED, head + own + own + tail, place.at)
        if place.part.of is not None:  # too long by one
            whole = b"".join((_one_of(place.part.of), b"{%d}" % len(place.part.octets)))
            before = place.before.removesuffix(place.part.pattern)
            after = place.after.removeprefix(place.part.pattern)
            pattern = re.compile(before + whole + b"(" + _one_of(place.part.of) + b")" + after)
            yield Search(pattern, dict.fromkeys(_single(place.part.of), twice), (b"",))
        else:
            ours = msgspec.structs.replace(place.part, octets=own)
            pattern = _compiled(place, ours.pattern + b"(" + ours.pattern + b")")
            yield Search(pattern, dict.fromkeys({own, own.upper(), own.lower()}, twice), (b"",))


def _compiled(place: _Place, deviating: bytes) -> re.Pattern[bytes]:
    return re.compile(place.before + deviating + place.after, re.DOTALL)


def _single(octets: frozenset[int]) -> Iterator[bytes]:
    return (bytes((octet,)) for octet in sorted(octets))


def _one_of(octets: frozenset[int]) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % octet for octet in sorted(octets)) + b"]"
