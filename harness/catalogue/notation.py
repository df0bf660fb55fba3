r"""The notation of scenario files: text to bytes.

``\r \n \t \xNN`` are escapes, any other backslash is 0x5C. ``{name}`` is a placeholder where the
name is known; else it stands for itself, with its braces:

===============  ==============================================================================
``{name}``       a value the caller gives (``{h}``, ``{p}``, a ``let`` of the case), or a set of
                 ``grammar.SETS`` in ascending order (``{tchar}``)
``{21..7e}``     the bytes 0x21 to 0x7E
``{#name+2}``    the length of a value in bytes (a number is itself), in decimal; ``{x#name}`` in
                 hexadecimal, ``{X#name}`` in capitals, ``{x8#name}`` with eight digits
``{=n+1}``       a sum of numbers, numeric values and lengths (``#name``), in decimal
``{N*text}``     text N times; N such a sum (``{128-k*a}``); ``{i}`` inside text counts from 0,
                 in sums too
``{align N*a}``  as many ``a``, at least one, as bring all bytes so far to a multiple of N;
                 ``{align 32-2*a}`` to two less than one
``{case j abc}`` the word in pattern j of small letters and capitals, by :func:`letter_case`
``{ramp N}``     N bytes, byte i is i mod 251
===============  ==============================================================================
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from httpmark.harness.http import grammar

Value = bytes | int

_ESCAPE = re.compile(rb"\\(?:([rnt])|x([0-9A-Fa-f]{2}))")
_LETTERS = {b"r": b"\r", b"n": b"\n", b"t": b"\t"}
_NAME = re.compile(rb"[A-Za-z0-9_.:-]+")
_RANGE = re.compile(rb"([0-9a-f]{2})\.\.([0-9a-f]{2})")
_LENGTH = re.compile(rb"(|x|X|x8)#([A-Za-z0-9_.:]+)((?:[+-][0-9]+)*)")
_SUM = re.compile(rb"#?[A-Za-z0-9_.]+(?:[+-]#?[A-Za-z0-9_.]+)*")
_TERM = re.compile(rb"([+-]?)(#?)([A-Za-z0-9_.]+)")
_INDEX = re.compile(rb"\{(?:i|=[^{}]*\bi\b[^{}]*)\}")
_ALIGN = re.compile(rb"align ([1-9][0-9]*)((?:[+-][0-9]+)*)\*(.)", re.DOTALL)
_CASE = re.compile(rb"case ([A-Za-z0-9_]+) ([A-Za-z-]+)")
_BASES = {b"": b"%d", b"x": b"%x", b"X": b"%X", b"x8": b"%08x"}
_RAMP = bytes(index % 251 for index in range(251))
_REPEAT_BYTES_MAX = 1 << 27


class Unknown(ValueError):
    """A placeholder that is declared but has no value here; ``name`` says which."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{{{name}}} has no value here")
        self.name = name


def unescape(text: str) -> bytes:
    r"""The bytes of ``\r \n \t \xNN``; any other backslash is 0x5C.

    :raises ValueError: a character beyond U+00FF.
    """
    return _ESCAPE.sub(
        lambda match: _LETTERS[match[1]] if match[1] else bytes((int(match[2], 16),)),
        text.encode("latin-1"),
    )


def expand(text: str, values: Mapping[str, Value | None]) -> bytes:
    """The bytes that a scenario text stands for.

    :param values: what placeholders stand for; ``None`` where a name is known and has no value.
    :raises Unknown: the text asks for a value that is None.
    :raises ValueError: a character beyond U+00FF.
    """
    return _expand(text.encode("latin-1"), values)


def _expand(text: bytes, values: Mapping[str, Value | None]) -> bytes:
    out = bytearray()
    for literal, inner in _parts(text):
        out += literal
        if inner is None:
            continue
        if match := _ALIGN.fullmatch(inner):
            out += match[3] * ((_literal_sum(match[2]) - len(out) - 1) % int(match[1]) + 1)
            continue
        made = _placeholder(inner, values)
        out += b"{" + _expand(inner, values) + b"}" if made is None else made
    return bytes(out)


@functools.lru_cache(maxsize=8192)
def _parts(text: bytes) -> tuple[tuple[bytes, bytes | None], ...]:
    """Literal bytes, each with the text in the braces after them; the last has none."""
    parts: list[tuple[bytes, bytes | None]] = []
    literal = bytearray()
    at = 0
    while at < len(text):
        octet = text[at : at + 1]
        if octet == b"\\" and (match := _ESCAPE.match(text, at)):
            literal += _LETTERS[match[1]] if match[1] else bytes((int(match[2], 16),))
            at = match.end()
        elif octet == b"{" and (end := _closing(text, at)) is not None:
            parts.append((bytes(literal), text[at + 1 : end]))
            literal.clear()
            at = end + 1
        else:
            literal += octet
            at += 1
    return (*parts, (bytes(literal), None))


def _closing(text: bytes, at: int) -> int | None:
    depth = 0
    for index in range(at, len(text)):
        if text[index] == 0x7B:
            depth += 1
        elif text[index] == 0x7D:
            depth -= 1
            if depth == 0:
                return index
    return None


def _placeholder(inner: bytes, values: Mapping[str, Value | None]) -> bytes | None:
    """What stands for ``{inner}``, or None where it is no placeholder."""
    if _NAME.fullmatch(inner) and (name := inner.decode()) in values:
        value = values[name]
        if value is None:
            raise Unknown(name)
        return b"%d" % value if isinstance(value, int) else value
    if inner.decode("latin-1") in grammar.SETS:
        return bytes(sorted(grammar.SETS[inner.decode("latin-1")]))
    if match := _RANGE.fullmatch(inner):
        return bytes(range(int(match[1], 16), int(match[2], 16) + 1))
    if (match := _LENGTH.fullmatch(inner)) and match[2].decode() in values:
        value = values[match[2].decode()]
        if value is None:
            raise Unknown(match[2].decode())
        length = (value if isinstance(value, int) else len(value)) + _literal_sum(match[3])
        return _BASES[match[1]] % length
    if inner[:1] == b"=" and (total := _sum(inner[1:], values)) is not None:
        return b"%d" % total
    if inner[:5] == b"ramp " and (total := _sum(inner[5:], values)) is not None:
        return (_RAMP * (total // 251 + 1))[:total]
    if (match := _CASE.fullmatch(inner)) and (number := _sum(match[1], values)) is not None:
        return letter_case(match[2], number)
    count, star, repeated = inner.partition(b"*")
    if star and (total := _sum(count, values)) is not None:
        if _INDEX.search(repeated):
            return b"".join(_expand(repeated, {**values, "i": index}) for index in range(total))
        once = _expand(repeated, values)
        if total * len(once) > _REPEAT_BYTES_MAX:
            raise ValueError(f"{{{inner.decode('latin-1')}}}: more than 128 MiB")
        return once * max(total, 0)
    return None


def letter_case(word: bytes, number: int) -> bytes:
    """A word in pattern ``number`` of small letters and capitals.

    Letter i of k, hyphens not counted, is a capital where bit i of number * 2654435769 mod 2^k is
    set. The factor is odd, so that the patterns of 0 to 2^k - 1 all differ (Knuth's
    multiplicative hashing).
    """
    letters = sum(octet != 0x2D for octet in word)
    bits = number * 2654435769 % (1 << letters)
    out = bytearray()
    for octet in word:
        piece = bytes((octet,))
        if octet != 0x2D:
            piece = piece.upper() if bits & 1 else piece.lower()
            bits >>= 1
        out += piece
    return bytes(out)


def _literal_sum(text: bytes) -> int:
    return sum(int(term[0]) for term in re.finditer(rb"[+-][0-9]+", text))


def _sum(text: bytes, values: Mapping[str, Value | None]) -> int | None:
    """A sum of numbers and numeric values, or None where a term is neither."""
    if not _SUM.fullmatch(text):
        return None
    total = 0
    for sign, length, term in _TERM.findall(text):
        if term.isdigit() and not length:
            value = int(term)
        else:
            name = term.decode()
            if name not in values:
                return None
            given = values[name]
            if given is None:
                raise Unknown(name)
            if length and isinstance(given, bytes):
                given = len(given)
            if not isinstance(given, int):
                return None
            value = given
        total += -value if sign == b"-" else value
    return total
