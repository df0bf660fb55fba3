"""Requests made by Hypothesis: valid ones that every server has to understand, and the same with
one thing wrong.

A :class:`Message` knows what it means, so that an answer can be compared with it. Sources: RFC 9110
5.1, 5.5, 5.6.2, 9.1; RFC 9112 3, 5, 6, 7.1; RFC 3986 3.3, 3.4.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import re
from collections.abc import Callable, Iterator

import hypothesis
import msgspec
from hypothesis import configuration
from hypothesis import strategies as st

from httpmark.harness.http import grammar

_FRAMING = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"connection", b"expect", b"upgrade",
     b"te", b"trailer", b"keep-alive", b"proxy-connection", b"http2-settings"}
)  # fmt: skip
_SPECIAL = (b"\r", b"\n", b"\x00", b" ", b"\t", b":", b";", b",", b"\xff", b"%", b"\x0b", b"0")


class Message(msgspec.Struct, frozen=True):
    """One request: its bytes and what they mean."""

    octets: bytes
    method: bytes
    target: bytes
    content: bytes
    fields: tuple[tuple[bytes, bytes], ...] = ()  # those without a meaning for framing
    trailers: tuple[tuple[bytes, bytes], ...] = ()


# A strategy is made once: making it again for each example costs more than drawing from it.
@functools.cache
def _octets(chosen: frozenset[int], *, least: int = 0, most: int = 12) -> st.SearchStrategy[bytes]:
    # Hypothesis draws text fastest; each character stands for a byte.
    alphabet = "".join(map(chr, sorted(chosen)))
    return st.text(alphabet, min_size=least, max_size=most).map(lambda t: t.encode("latin-1"))


@functools.cache
def _encoded(chosen: frozenset[int]) -> st.SearchStrategy[bytes]:
    """Bytes of a set, with percent-encoded printable ones between them (RFC 3986 2.1)."""
    pair = st.sampled_from(sorted(grammar.VCHAR)).map(lambda octet: b"%%%02X" % octet)
    return st.lists(st.one_of(_octets(chosen, least=1, most=4), pair), max_size=4).map(b"".join)


@functools.cache
def targets(place: bytes) -> st.SearchStrategy[bytes]:
    """Origin-form targets at a place that the server has, with any query."""
    query = _encoded(grammar.TARGET)
    return st.one_of(st.just(place), query.map(lambda text: place + b"?" + text))


@functools.cache
def fields() -> st.SearchStrategy[tuple[bytes, bytes, bytes]]:
    """A field line: its bytes without CRLF, its name, and its value without the space around it."""
    space = _octets(grammar.SP | grammar.HTAB, most=3)
    name = _octets(grammar.TCHAR, least=1, most=8).filter(lambda n: n.lower() not in _FRAMING)
    inner = _octets(grammar.VCHAR | grammar.OBS_TEXT | grammar.SP | grammar.HTAB)
    value = inner.map(lambda text: text.strip(b" \t"))
    return st.tuples(name, space, value, space).map(
        lambda t: (t[0] + b":" + t[1] + t[2] + t[3], t[0], t[2])
    )


@functools.cache
def _lines(most: int) -> st.SearchStrategy[list[tuple[bytes, bytes, bytes]]]:
    return st.lists(fields(), max_size=most)


def _chunks(content: bytes, cuts: list[int], sizes: list[int], tail: bytes) -> bytes:
    """Content in chunks, cut at ``cuts``; ``sizes`` are the numbers of leading zeros."""
    out = bytearray()
    places = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    for number, (start, end) in enumerate(itertools.pairwise(places)):
        zeros = sizes[number % len(sizes)] if sizes else 0
        out += b"0" * zeros + b"%x\r\n" % (end - start) + content[start:end] + b"\r\n"
    return bytes(out) + b"0\r\n" + tail + b"\r\n"


_METHODS = st.sampled_from((b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS"))
_FRAMINGS = st.sampled_from(("none", "length", "chunked"))
_CONTENTS = st.binary(max_size=40)
_CUTS = st.lists(st.integers(0, 40), max_size=2)
_ZEROS = st.lists(st.integers(0, 3), max_size=2)


@st.composite
def messages(draw: st.DrawFn, *, host: bytes, place: bytes) -> Message:
    """A whole, valid request."""
    method = draw(_METHODS)
    target = draw(targets(place))
    lines = draw(_lines(3))
    framing = draw(_FRAMINGS) if method != b"GET" else "none"
    content = b"" if framing == "none" else draw(_CONTENTS)
    trailers: list[tuple[bytes, bytes, bytes]] = []
    head = [b"Host: " + host, *(line for line, _, _ in lines)]
    body = content
    if framing == "length":
        head.append(b"Content-Length: %d" % len(content))
    elif framing == "chunked":
        trailers = draw(_lines(1))
        head.append(b"Transfer-Encoding: chunked")
        body = _chunks(
            content,
            draw(_CUTS),
            draw(_ZEROS),
            b"".join(line + b"\r\n" for line, _, _ in trailers),
        )
    elif method in (b"POST", b"PUT", b"PATCH"):
        head.append(b"Content-Length: 0")
    head = draw(st.permutations(head))
    octets = method + b" " + target + b" HTTP/1.1\r\n" + b"".join(h + b"\r\n" for h in head)
    order = {line: (name, value) for line, name, value in lines}
    return Message(
        octets + b"\r\n" + body,
        method,
        target,
        content,
        tuple(order[line] for line in head if line in order),
        tuple((name, value) for _, name, value in trailers),
    )


@st.composite
def mutated(draw: st.DrawFn, *, host: bytes, place: bytes) -> bytes:
    """A valid request with one change: a byte deleted, doubled, inserted or swapped with the next;
    two requests spliced; a length or a delimiter changed."""
    octets = draw(messages(host=host, place=place)).octets
    # Half of the changes go where bytes have a meaning: there readers differ.
    joints = [i for i, octet in enumerate(octets) if octet in b"\r\n: \t;%"]
    at = draw(st.one_of(st.sampled_from(joints), st.integers(0, len(octets) - 1)))
    match draw(st.sampled_from(_MUTATIONS)):
        case "delete":
            return octets[:at] + octets[at + 1 :]
        case "double":
            return octets[:at] + octets[at : at + 1] + octets[at:]
        case "swap":
            return octets[:at] + octets[at + 1 : at + 2] + octets[at : at + 1] + octets[at + 2 :]
        case "insert":
            octet = draw(st.one_of(st.sampled_from(_SPECIAL), st.binary(min_size=1, max_size=1)))
            return octets[:at] + octet + octets[at:]
        case "splice":
            other = draw(messages(host=host, place=place)).octets
            return octets[:at] + other[draw(st.integers(0, len(other) - 1)) :]
        case "length":
            digits = [i for i, octet in enumerate(octets) if octet in grammar.DIGIT]
            # The beginning of a length is chosen as often as all its other digits: the number
            # after it stays right, so only what is put before it can be wrong.
            begins = [match.start() for match in _LENGTH.finditer(octets)] or digits
            spot = draw(st.one_of(st.sampled_from(begins), st.sampled_from(digits)))
            rest = octets[spot + draw(st.integers(0, 1)) :]
            return octets[:spot] + draw(st.sampled_from(_IN_LENGTHS)) + rest
        case _:
            spot = draw(st.sampled_from(joints))
            return octets[:spot] + draw(st.sampled_from(_SPECIAL)) + octets[spot + 1 :]


_LENGTH = re.compile(rb"(?<=\nContent-Length: )[0-9]|(?<=\r\n)[0-9a-f](?=[0-9a-f]*\r\n)")
_IN_LENGTHS = (b"1", b"9", b"+", b"-", b"x", b"00", b"0x", b"_")
_MUTATIONS = ("delete", "double", "swap", "insert", "splice", "length", "delimiter")


Requests = st.SearchStrategy[bytes]

_ROUND_EXAMPLES = 400  # that one search tries before the next one begins
_BATCH_EXAMPLES = 40


def requests(*, host: bytes, place: bytes) -> Requests:
    """Valid requests, and three times as often the same with one thing wrong."""
    valid = messages(host=host, place=place).map(lambda one: one.octets)
    wrong = mutated(host=host, place=place)
    return st.one_of(valid, wrong, wrong, wrong)


def smallest(
    strategy: Requests,
    condition: Callable[[bytes], bool],
    chance: random.Random,
    *,
    examples: int = _ROUND_EXAMPLES,
) -> None:
    """Ask ``condition`` about example after example. Once it holds, ask about smaller ones."""
    found_nothing = hypothesis.errors.NoSuchExample, hypothesis.errors.Flaky
    with contextlib.suppress(*found_nothing), _keeping_nothing():
        hypothesis.find(
            strategy,
            condition,
            settings=hypothesis.settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            ),
            random=random.Random(chance.getrandbits(64)),
        )


@contextlib.contextmanager
def _keeping_nothing() -> Iterator[None]:
    """Without a folder ``.hypothesis`` where the user stands: it would hold what our own modules
    look like."""
    configuration.set_hypothesis_home_dir(os.devnull)
    try:
        yield
    finally:
        configuration.set_hypothesis_home_dir(None)


def examples(strategy: Requests, *, seed: int) -> Iterator[bytes]:
    """Endless examples, the same ones for the same seed."""
    chance = random.Random(seed)
    while True:
        batch: list[bytes] = []

        def collect(tried: bytes, batch: list[bytes] = batch) -> bool:
            batch.append(tried)
            return False

        smallest(strategy, collect, chance, examples=_BATCH_EXAMPLES)
        yield from batch
