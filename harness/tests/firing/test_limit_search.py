"""Limits found by asking, against servers that are functions."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from httpmark.harness.firing import limit_search
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.servers import LIMITS


def found(
    ask: limit_search.Ask,
    facts: Facts,
    wanted: Iterable[str],
    *,
    in_pieces: limit_search.Ask | None = None,
) -> dict[str, int | None]:
    return limit_search.found(ask, facts, wanted, in_pieces=in_pieces or ask)


FACTS = Facts(host="a", capabilities=("hello", "body"))


def status(number: int) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n" % number


def size(name: str, octets: bytes) -> int:
    """What a server would measure."""
    head, _, content = octets.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    return {
        "request_target_bytes": len(lines[0].split(b" ")[1]),
        "field_line_bytes": len(lines[-1]) + 2,
        "fields": len(lines) - 1,
        "content_bytes": len(content),
    }[name]


@pytest.mark.parametrize("name", limit_search.NAMES)
@pytest.mark.parametrize("limit", [1025, 8192, 9999])
@pytest.mark.parametrize("refusal", [status(431), status(400), b"", None, b"garbage"])
def test_a_limit_is_found_to_the_byte(name: str, limit: int, refusal: bytes | None) -> None:
    def ask(octets: bytes) -> bytes | None:
        return status(404) if size(name, octets) <= limit else refusal

    assert found(ask, FACTS, [name]) == {name: limit}


def test_names_are_those_of_manifests() -> None:
    assert set(limit_search.NAMES) <= set(LIMITS)


def test_no_limit_is_none() -> None:
    assert found(lambda _: status(200), FACTS, ["fields"]) == {"fields": None}
    assert found(lambda _: status(431), FACTS, ["fields"]) == {"fields": None}


def test_a_limit_that_moves_is_none() -> None:
    asked = 0

    def ask(octets: bytes) -> bytes:
        nonlocal asked
        asked += 1
        return status(200 if size("fields", octets) <= 100 + asked % 3 * 50 else 431)

    assert found(ask, FACTS, ["fields"]) == {"fields": None}


def test_a_limit_that_moves_with_the_pieces_is_none() -> None:
    def limited(limit: int) -> limit_search.Ask:
        return lambda octets: status(200 if size("fields", octets) <= limit else 431)

    assert found(limited(100), FACTS, ["fields"], in_pieces=limited(100)) == {"fields": 100}
    for other in (99, 101, 5000):
        assert found(limited(100), FACTS, ["fields"], in_pieces=limited(other)) == {"fields": None}


def test_interim_answers_are_read_over() -> None:
    def ask(octets: bytes) -> bytes:
        small = size("content_bytes", octets) <= 5000
        return b"HTTP/1.1 100 Continue\r\n\r\n" + status(200 if small else 413)

    assert found(ask, FACTS, ["content_bytes"]) == {"content_bytes": 5000}


def test_content_is_searched_only_where_it_is_read() -> None:
    assert found(lambda _: status(200), Facts(host="a"), ["content_bytes"]) == {}
    assert found(lambda _: status(200), FACTS, ["head_bytes"]) == {}


def test_messages_are_as_long_as_they_say() -> None:
    seen: list[bytes] = []

    def ask(octets: bytes) -> bytes:
        seen.append(octets)
        return status(200)

    found(ask, FACTS, limit_search.NAMES)
    assert all(re.match(rb"(?:GET|POST) \S+ HTTP/1\.1\r\nHost: a\r\n", one) for one in seen)
    assert {size(name, one) for name, one in zip(
        limit_search.NAMES, seen[::2], strict=True
    )} == {16, 1024}  # fmt: skip
