"""Histograms of latency, read from the form they are stored in: HdrHistogram V2 in base64.

The layout is that of the HdrHistogram project's ``V2CompressedEncoding``: a cookie and a length,
then a zlib stream of forty bytes of header and the counts as ZigZag LEB128, a negative one being
a run of empty buckets. Addition is exact, so windows and machines can be merged.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

# Without the nibble that says how wide the counts are; those of V2 are of any width.
_COOKIE_PACKED = 0x1C849304 & ~0xF0
_COOKIE = 0x1C849303 & ~0xF0
_ANY_WIDTH = 0x10
_HEADER = struct.Struct(">iiiiqqd")
_OCTETS_MAX = 9  # of one count
_INFLATED_BYTES_MAX = 1 << 24  # inflated; a histogram of three digits has at most a few hundred kB


class Unreadable(ValueError):
    """The bytes are no such histogram."""


class Layout(NamedTuple):
    """What says which values a bucket holds."""

    digits: int
    lowest: int
    highest: int


class Histogram:
    """Counts by bucket; values are in nanoseconds where the load generator wrote them."""

    def __init__(self, layout: Layout, counts: dict[int, int]) -> None:
        self._half_magnitude = max(math.ceil(math.log2(2 * 10**layout.digits)), 1) - 1
        self._unit_magnitude = layout.lowest.bit_length() - 1
        self.layout = layout
        self.counts = counts
        self.total = sum(counts.values())

    def highest_of(self, index: int) -> int:
        """The highest value that falls into a bucket."""
        half = 1 << self._half_magnitude
        bucket = (index >> self._half_magnitude) - 1
        within = (index & (half - 1)) + half
        if bucket < 0:
            within, bucket = within - half, 0
        return ((within + 1) << (bucket + self._unit_magnitude)) - 1

    def add(self, other: Histogram) -> None:
        """Add the counts of another one, bucket by bucket.

        :raises Unreadable: it is not alike in digits and range.
        """
        if other.layout != self.layout:
            raise Unreadable("histograms of different layouts")
        for index, count in other.counts.items():
            self.counts[index] = self.counts.get(index, 0) + count
        self.total += other.total

    def percentiles(self, shares: Iterable[float]) -> list[int]:
        """The values that such shares of all values do not exceed; shares ascend, in 0 to 1.

        The highest value of the bucket, as HdrHistogram has it.
        """
        found: list[int] = []
        buckets = iter(sorted(self.counts))
        index, below = 0, 0
        for share in shares:
            wanted = max(math.ceil(share * self.total - 1e-9), 1)
            while below < wanted:
                index = next(buckets)
                below += self.counts[index]
            found.append(self.highest_of(index))
        return found

    def stored(self) -> str:
        """The histogram as it is stored: the octets that the load generator writes of the same."""
        octets, at = bytearray(), 0
        for index in sorted(self.counts):
            if not self.counts[index]:
                continue
            if index > at:
                octets += _packed(at - index)
            octets += _packed(self.counts[index])
            at = index + 1
        header = _HEADER.pack(_COOKIE | _ANY_WIDTH, len(octets), 0, *self.layout, 1.0)
        packed = zlib.compress(header + octets)
        return base64.b64encode(
            struct.pack(">ii", _COOKIE_PACKED | _ANY_WIDTH, len(packed)) + packed
        ).decode("ascii")


def _packed(number: int) -> bytes:
    """A count, or a run of empty buckets as a negative one: ZigZag LEB128 in at most nine bytes."""
    value = number << 1 if number >= 0 else (-number << 1) - 1
    octets = bytearray()
    while value >= 0x80 and len(octets) < _OCTETS_MAX - 1:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def read(text: str) -> Histogram:
    """A stored histogram.

    :raises Unreadable: it is none, or of another version.
    """
    try:
        packed = base64.b64decode(text, validate=True)
        cookie, size = struct.unpack(">ii", packed[:8])
        if cookie & ~0xF0 != _COOKIE_PACKED or size != len(packed) - 8:
            raise Unreadable("no compressed histogram of version 2")
        inflater = zlib.decompressobj()
        octets = inflater.decompress(packed[8:], _INFLATED_BYTES_MAX)
        cookie, size, offset, digits, lowest, highest, _ = _HEADER.unpack_from(octets)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise Unreadable(f"no histogram: {error}") from None
    if cookie & ~0xF0 != _COOKIE or offset != 0 or not 1 <= digits <= 5 or lowest < 1:
        raise Unreadable("no histogram of version 2")
    if size != len(octets) - _HEADER.size:
        raise Unreadable("a histogram cut short")
    return Histogram(Layout(digits, lowest, highest), _counts(octets[_HEADER.size :]))


def _counts(octets: bytes) -> dict[int, int]:
    counts: dict[int, int] = {}
    at = index = 0
    while at < len(octets):
        number = shift = 0
        while True:
            if at >= len(octets):
                raise Unreadable("a histogram cut short")
            octet = octets[at]
            at += 1
            # The ninth byte, if there is one, holds eight bits and is the last.
            number |= (octet if shift == 56 else octet & 0x7F) << shift
            if shift == 56 or octet < 0x80:
                break
            shift += 7
        count = (number >> 1) ^ -(number & 1)
        if count < 0:
            index -= count
            continue
        if count:
            counts[index] = count
        index += 1
    return counts


def merged(stored: Iterable[str]) -> Histogram | None:
    """The sum of stored histograms of one layout; None of none.

    :raises Unreadable: one is none, or they are not alike in digits and range.
    """
    total: Histogram | None = None
    for text in stored:
        one = read(text)
        if total is None:
            total = one
            continue
        total.add(one)
    return total
