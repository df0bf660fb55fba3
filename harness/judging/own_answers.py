"""What the application itself answers to good requests at the places that a case asks for.

An ordinary application has exact routes. Its 404 to a path that it does not know shows that the
request was read and understood: in the place of a 2xx it accepts, and it is no refusal of a
malformed path (``firing.yardstick`` asks; docs/catalogue.md).
"""

from __future__ import annotations

import re

from httpmark.harness.judging.answer_words import PARSED
from httpmark.harness.model.cases import Facts, OwnAnswers

_REQUEST = re.compile(rb"(?:\A|\n)(?:\r\n)*([!-~]+)[ \t]+([^\n]*?)[ \t]*(?:HTTP/[0-9]|[\r\n])")
_AUTHORITY = re.compile(rb"(?i)\Ahttps?://[^/?#]+")
_SCHEME = re.compile(rb"(?i)\Ahttps?:")

Own = tuple[frozenset[int], ...]
"""For each answer of a case the statuses, other than 2xx, that are the application's own."""
_NOTHING: frozenset[int] = frozenset()


def of(sent: bytes, facts: Facts | None) -> Own:
    """The application's own statuses for each request in ``sent``; empty if all are 2xx.

    The last entry stands for all answers beyond it.
    """
    if facts is None or not is_choosy(facts.own):
        return ()
    asked = _REQUEST.findall(sent)
    if not asked:
        return ()
    found = [_statuses(method, target, facts) for method, target in asked]
    return (found[0], frozenset().union(*found))


def is_choosy(own: OwnAnswers) -> bool:
    """Whether the application answers some good request with another status than 2xx."""
    # Asked once for each of a million exchanges.
    return (
        (own.unknown_path or 0) >= 300
        or (own.query or 0) >= 300
        or (own.head or 0) >= 300
        or (own.post or 0) >= 300
        or (own.post_empty or 0) >= 300
    )


def at(own: Own, index: int) -> frozenset[int]:
    """The application's own statuses for one answer of a case."""
    return own[min(index, len(own) - 1)] if own else _NOTHING


def _statuses(method: bytes, target: bytes, facts: Facts) -> frozenset[int]:
    known = _known(method, _AUTHORITY.sub(b"", target) or b"/", facts)
    return frozenset(
        status for status in known if status is not None and status in PARSED and status >= 300
    )


def _known(method: bytes, target: bytes, facts: Facts) -> tuple[int | None, ...]:
    own, is_at_path = facts.own, _path(target) == _path(facts.path)
    if method == b"POST":
        to = facts.posted_to
        return (own.post, own.post_empty) if to and _path(target) == _path(to) else ()
    if method == b"HEAD":
        return (own.head,) if is_at_path else (own.head, own.unknown_path)
    if method != b"GET" or target == facts.path.encode("latin-1"):
        return ()
    if _SCHEME.match(target):
        return ()  # there is no authority: it is not known what an application makes of it
    return (own.query if is_at_path else own.unknown_path,)


def _path(target: bytes | str) -> bytes:
    octets = target.encode("latin-1") if isinstance(target, str) else target
    return octets.partition(b"?")[0]
