"""Limits that a server does not declare, found by asking.

Between 1 KiB and 1 MiB (16 and 16,384 field lines), one request on each connection. A limit counts
only if one more is refused three times running, and if it is the same for a request in pieces.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from httpmark.harness.http import response_reader
from httpmark.harness.model.cases import Facts

Ask = Callable[[bytes], bytes | None]

_LOW, _HIGH = 1024, 1 << 20
_FIELDS_LOW, _FIELDS_HIGH = 16, 16384
_RUNNING = 3  # times that a limit has to show
# Statuses of a request that was understood and not refused for its size.
_TAKEN = frozenset(
    (*range(200, 400), *range(401, 407), *range(409, 413), 415, 416, 417, 421, 422, 426, 428, 429,
     451, 501)
)  # fmt: skip


def found(
    ask: Ask, facts: Facts, wanted: Iterable[str], *, in_pieces: Ask
) -> dict[str, int | None]:
    """The limits of ``wanted``, words of ``NAMES``; None for a limit that cannot be found.

    :param ask: sends a request on a fresh connection and returns what came back, or None if there
        was no connection.
    :param in_pieces: the same, with a request that arrives in pieces.
    """
    limits: dict[str, int | None] = {}
    for name in wanted:
        if name not in _MESSAGES or (name == "content_bytes" and "body" not in facts.capabilities):
            continue
        low, high = (_FIELDS_LOW, _FIELDS_HIGH) if name == "fields" else (_LOW, _HIGH)
        taken = functools.partial(_taken, ask, facts, _MESSAGES[name])
        limit = _searched(taken, low, high)
        if limit is not None:
            taken = functools.partial(_taken, in_pieces, facts, _MESSAGES[name])
            limits[name] = limit if taken(limit) and not taken(limit + 1) else None
        else:
            limits[name] = None
    return limits


def _searched(taken: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest size that is taken; None if there is no limit, or if it moves."""
    if not taken(low) or taken(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if taken(middle):
            low = middle
        else:
            high = middle
    steady = all(taken(low) and not taken(low + 1) for _ in range(_RUNNING))
    return low if steady else None


def _taken(ask: Ask, facts: Facts, message: Callable[[Facts, int], bytes], size: int) -> bool:
    return response_reader.final_status(ask(message(facts, size))) in _TAKEN


def _head(facts: Facts, line: str, fields: bytes) -> bytes:
    return f"{line} HTTP/1.1\r\n{facts.host_lines}".encode("latin-1") + fields + b"\r\n"


def _target(facts: Facts, size: int) -> bytes:
    return _head(facts, "GET /" + "a" * (size - 1), b"")


def _field_line(facts: Facts, size: int) -> bytes:
    return _head(facts, f"GET {_place(facts)}", b"X-A: " + b"a" * (size - 7) + b"\r\n")


def _fields(facts: Facts, size: int) -> bytes:
    counted = b"".join(b"X-%d: a\r\n" % number for number in range(size - 1))  # one more is Host
    return _head(facts, f"GET {_place(facts)}", counted)


def _content(facts: Facts, size: int) -> bytes:
    return _head(facts, "POST /body", b"Content-Length: %d\r\n" % size) + b"a" * size


def _place(facts: Facts) -> str:
    """The place that cases about a header section go to, so that only the size differs."""
    return "/mirror" if "mirror" in facts.capabilities else facts.path


_MESSAGES: dict[str, Callable[[Facts, int], bytes]] = {
    "request_target_bytes": _target,
    "field_line_bytes": _field_line,
    "fields": _fields,
    "content_bytes": _content,
}
NAMES = tuple(_MESSAGES)
