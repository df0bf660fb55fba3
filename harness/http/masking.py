"""Secrets of the user, hidden in all that is stored, logged or printed.

A field line of ``--header`` is marked when it comes in (:func:`mark`). From then on, what this
process keeps is masked where it is kept: evidence, log, result, trace. The wire alone gets the true
bytes. Each byte is replaced by one star, so lengths and offsets stay true.
"""

from __future__ import annotations

import base64
import binascii
import html
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote_to_bytes

import msgspec

from httpmark.harness.model.cases import Facts
from httpmark.harness.model.exchanges import Exchange

SECRET_BYTES_MIN = 6  # a shorter value would be found anywhere
# What frames a message stays as it is. A value that looks like it would change how it is read.
_FRAMES = re.compile(
    rb"(?im)^HTTP/\d\.\d \d{3}(?=[ \r\n])"
    rb"|^(?:content-length|transfer-encoding|connection)[ \t]*:"
    rb"[ \t]*(?:\d{1,19}|chunked|gzip|close|keep-alive|upgrade)(?=[ \t,\r\n])"
    rb"|^[0-9a-f]{1,8}(?=\r?$)"
    rb"| HTTP/\d\.\d(?=\r?$)"
)
_WORDS = re.compile(rb'[\s,;="&]+')


class Mask:
    """Hides the values of some field lines.

    In what was sent, the lines are known. What came back is searched for the values and their
    words: as they are, in base64 (as a mirror writes them) and as JSON, HTML and URLs write them.
    """

    def __init__(self, header: Iterable[str]) -> None:
        self._lines: list[re.Pattern[bytes]] = []
        self._echoes: list[re.Pattern[bytes]] = []
        self._shown: dict[bytes, bytes] = {}
        self._secrets: set[bytes] = set()
        for line in header:
            name, _, value = line.encode("latin-1").partition(b":")
            begin = rb"(?i)(\n" + re.escape(name) + rb":[ \t]*)"
            self._lines.append(re.compile(begin + rb"([^\r\n]*)"))
            self._echoes.append(
                re.compile(begin + rb"(" + re.escape(value.strip()) + rb")(?=[ \t]*[\r\n])")
            )
            for secret in _secrets(value.strip()):
                self._secrets.add(secret)
                self._shown = _as_written(secret) | self._shown  # its plain form before others
        longest_first = sorted(self._shown, key=len, reverse=True)
        self._found = (
            re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None
        )

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return bool(self._lines)

    def sent(self, octets: bytes) -> bytes:
        """What the harness sent, without the values."""
        for line in self._lines:
            octets = line.sub(_starred, octets)
        return self._searched(octets)

    def received(self, octets: bytes) -> bytes:
        """What a server sent, without the values."""
        for line in self._echoes:
            octets = line.sub(_starred, octets)
        return self._searched(octets)

    def text(self, text: str) -> str:
        """A message without the values."""
        if self._found is None:
            return text
        octets = text.encode("utf-8", "surrogatepass")
        return self._found.sub(self._stars, octets).decode("utf-8", "surrogatepass")

    def leaves_a_part(self, octets: bytes) -> bool:
        """Whether masked bytes still hold a piece of a value, as where a request was cut."""
        size = SECRET_BYTES_MIN
        return any(
            secret[at : at + size] in octets
            for secret in self._secrets
            for at in range(len(secret) - size + 1)
        )

    def _searched(self, octets: bytes) -> bytes:
        if self._found is None or not self._found.search(octets):
            return octets
        parts: list[bytes] = []
        at = 0
        for frame in _FRAMES.finditer(octets):
            parts += self._found.sub(self._stars, octets[at : frame.start()]), frame[0]
            at = frame.end()
        return b"".join((*parts, self._found.sub(self._stars, octets[at:])))

    def _stars(self, found: re.Match[bytes]) -> bytes:
        return self._shown[found[0]]


def _starred(found: re.Match[bytes]) -> bytes:
    return found[1] + b"*" * len(found[2])


def _secrets(value: bytes) -> Iterator[bytes]:
    """A value, its words, and what Basic credentials stand for."""
    words = [value, *value.split(), *_WORDS.split(value)]
    for word in tuple(words):
        try:
            name, colon, password = base64.b64decode(word, validate=True).partition(b":")
        except (binascii.Error, ValueError):
            continue
        if colon and value[:6].lower() == b"basic ":
            words += (name + colon + password, password)
    return (word for word in dict.fromkeys(words) if len(word) >= SECRET_BYTES_MIN)


def _as_written(secret: bytes) -> dict[bytes, bytes]:
    """The forms in which a server may write a value, and what is shown instead of each."""
    text = secret.decode("latin-1")
    plain = {
        secret, text.encode(), json.dumps(text)[1:-1].encode(), html.escape(text).encode(),
        quote(secret).encode(), quote(secret, safe="").encode(), unquote_to_bytes(secret),
    }  # fmt: skip
    shown = {form: b"*" * len(form) for form in plain if len(form) >= SECRET_BYTES_MIN}
    for form, ahead in itertools.product((secret, text.encode()), range(3)):
        # In the middle of a longer text, only some of the characters are those of the value alone.
        begin, end = math.ceil(ahead * 8 / 6), (ahead + len(form)) * 8 // 6
        hidden = base64.b64encode(bytes(ahead) + b"*" * len(form))[begin:end]
        shown[base64.b64encode(bytes(ahead) + form)[begin:end]] = hidden
    shown[base64.b64encode(secret)] = base64.b64encode(b"*" * len(secret))
    return shown


_marked: list[str] = []
_mask = Mask(())


def mark(header: Iterable[str]) -> None:
    """From now on, hide the values of these field lines, too."""
    global _mask
    fresh = [line for line in header if line not in _marked]
    if fresh:
        _marked.extend(fresh)
        _mask = Mask(_marked)


def exchange(one: Exchange) -> Exchange:
    """An exchange as it may be kept."""
    if not _mask:
        return one
    return msgspec.structs.replace(
        one, sent=_mask.sent(one.sent), received=_mask.received(one.received)
    )


def text(message: str) -> str:
    """A message as it may be kept or printed."""
    return _mask.text(message)


def leaves_a_part(one: Exchange) -> bool:
    """Whether an exchange holds a piece of a secret that :func:`exchange` does not find."""
    kept = exchange(one)
    return _mask.leaves_a_part(kept.sent + kept.received)


def is_mask(value: bytes) -> bool:
    """Whether a value was masked as a whole: it is one of the user's own."""
    return bool(value) and not value.strip(b"*")


def line(field: str) -> str:
    """A field line with stars for its value."""
    name, _, value = field.partition(":")
    bare = value.lstrip(" \t")
    return f"{name}:{value[: len(value) - len(bare)]}{'*' * len(bare)}"


def facts(known: Facts) -> Facts:
    """What is known of a target, as it may be kept."""
    return msgspec.structs.replace(known, header=tuple(map(line, known.header)))
