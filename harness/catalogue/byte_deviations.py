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


def deviations(parts: tuple[Part, ...], valid: re.Pattern[bytes]) -> Iterator[Deviation]:
    """The deviations of a sample. Those that are valid, too, are left out.

    :param valid: matches the sample, and all that the rule allows in its place.
    """
    for place in _all_places(parts, valid):
        for name in grammar.BYTE_CLASSES:
            if (octet := next(_invalid(place, name, valid), None)) is not None:
                yield Deviation(place.name, name, place.with_octets(bytes((octet,))), place.at)
        for kind, octets in ((DELETED, b""), (DOUBLED, 2 * place.own)):
            if not valid.fullmatch(place.with_octets(octets)):
                yield Deviation(place.name, kind, place.with_octets(octets), place.at)


def searches(parts: tuple[Part, ...], valid: re.Pattern[bytes]) -> Iterator[Search]:
    """What finds the deviations of a sample in any bytes; see :func:`deviations`."""
    places = {place.name: place for place in _all_places(parts, valid)}
    by_place: dict[str, list[Deviation]] = {}
    for one in deviations(parts, valid):
        by_place.setdefault(one.place, []).append(one)
    for name, made in by_place.items():
        yield from _at_place(places[name], made, valid)


def _all_places(parts: tuple[Part, ...], valid: re.Pattern[bytes]) -> Iterator[_Place]:
    sample = b"".join(part.octets for part in parts)
    assert valid.fullmatch(sample), sample
    start = 0
    for number, part in enumerate(parts):
        before = b"".join(one.pattern for one in parts[:number])
        after = b"".join(one.pattern for one in parts[number + 1 :])
        if part.around is None:
            for place, at, left, right in _places(part):
                yield _Place(place, sample, start + at, before + left, right + after, part)
        start += len(part.octets)


class _Place(msgspec.Struct, frozen=True):
    name: str
    sample: bytes
    at: int
    before: bytes  # patterns
    after: bytes
    part: Part

    @property
    def own(self) -> bytes:
        """The byte of the sample that stands there."""
        return self.sample[self.at : self.at + 1]

    def with_octets(self, octets: bytes) -> bytes:
        """The sample with other bytes there."""
        return self.sample[: self.at] + octets + self.sample[self.at + 1 :]


def _invalid(place: _Place, name: str, valid: re.Pattern[bytes]) -> Iterator[int]:
    """The bytes of a class that break the rule at a place."""
    return (
        octet
        for octet in sorted(grammar.BYTE_CLASSES[name])
        if not valid.fullmatch(place.with_octets(bytes((octet,))))
    )


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


def _at_place(place: _Place, made: list[Deviation], valid: re.Pattern[bytes]) -> Iterator[Search]:
    own = place.own
    found = {
        bytes((octet,)): one
        for one in made
        if one.kind not in (DELETED, DOUBLED)
        for octet in _invalid(place, one.kind, valid)
    }
    if found:
        deviating = _one_of(frozenset(octet[0] for octet in found))
        yield Search(_compiled(place, b"(" + deviating + b")"), found, (own, b""))
    for one in made:
        if one.kind == DELETED:
            yield Search(_compiled(place, b"()"), {b"": one}, (own,))
        elif one.kind == DOUBLED and place.part.of is not None:  # too long by one
            whole = b"".join((_one_of(place.part.of), b"{%d}" % len(place.part.octets)))
            before = place.before.removesuffix(place.part.pattern)
            after = place.after.removeprefix(place.part.pattern)
            pattern = re.compile(before + whole + b"(" + _one_of(place.part.of) + b")" + after)
            yield Search(pattern, dict.fromkeys(_single(place.part.of), one), (b"",))
        elif one.kind == DOUBLED:
            ours = msgspec.structs.replace(place.part, octets=own)
            pattern = _compiled(place, ours.pattern + b"(" + ours.pattern + b")")
            yield Search(pattern, dict.fromkeys({own, own.upper(), own.lower()}, one), (b"",))


def _compiled(place: _Place, deviating: bytes) -> re.Pattern[bytes]:
    return re.compile(place.before + deviating + place.after, re.DOTALL)


def _single(octets: frozenset[int]) -> Iterator[bytes]:
    return (bytes((octet,)) for octet in sorted(octets))


def _one_of(octets: frozenset[int]) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % octet for octet in sorted(octets)) + b"]"
