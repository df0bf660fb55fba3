"""What a check found out about its target before it judged: address, path, abilities, limits."""

from __future__ import annotations

from collections.abc import Mapping

from httpmark.harness.http import address
from httpmark.harness.model.cases import Facts

_BYTES_PER_KIB = 1024
_WORDS = {
    "hello": "answers GET",
    "catch_all": "answers any path",
    "own_answer": "answers unknown paths as itself",
    "early": "answers before it reads the content",
    "body": "sends content back (body)",
    "mirror": "shows what it understood (mirror)",
    "behave": "has every place of behave",
    "echo": "decodes queries (echo)",
    "tls": "TLS",
    "static": "serves files (static)",
    "websocket": "websockets",
    "events": "streams answers (events)",
}


def facts_told(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Facts for people, each with its label."""
    told = [("address", _place(facts)), ("path", f"GET {facts.path}, Host: {facts.host}")]
    told.append(("POST", _post(facts)))
    if own := _own(facts):
        told.append(("answers", own))
    if facts.header:
        names = ", ".join(line.partition(":")[0] for line in facts.header)
        told.append(("fields", f"{names}: sent with every request"))
    told.append(("can do", ", ".join(_WORDS.get(one, one) for one in facts.capabilities)))
    told.append(("limits", _known(_limits(facts.limits))))
    told.append(("timeouts", _known(_timeouts(facts))))
    if facts.slowest_ms:
        told.append(("slowest", f"{facts.slowest_ms:,} ms, of a few plain requests"))
    if facts.at_once is not None:
        told.append(("at once", f"{facts.at_once:,} plain requests"))
    return tuple(told)


def _place(facts: Facts) -> str:
    if facts.unix is not None:
        return f"unix:{facts.unix}"
    return address.url(facts.address or "unknown", facts.port, "/", tls=facts.scheme == "https")


def _post(facts: Facts) -> str:
    if facts.posted_to is None:
        return "nothing that was asked takes it; --post-path PATH names a path that does"
    return f"POST {facts.posted_to}"


def _own(facts: Facts) -> str:
    """What the application itself answers to good requests, where that is no 2xx."""
    own = facts.own
    told = [
        ("an unknown path", own.unknown_path),
        ("a query", own.query),
        ("HEAD", own.head),
        ("POST", own.post),
        ("POST without content", own.post_empty),
    ]
    return ", ".join(
        f"{status} to {what}" for what, status in told if status is not None and status >= 300
    )


def _known(told: list[str]) -> str:
    return ", ".join(told) or "none known; --manifest FILE declares them"


def _limits(limits: Mapping[str, int | None]) -> list[str]:
    return [
        f"{name.replace('_bytes', '').replace('_', ' ')} "
        + (_bytes(limit) if name.endswith("_bytes") else f"{limit:,}")
        for name, limit in limits.items()
        if limit is not None
    ]


def _bytes(number: int) -> str:
    if number % _BYTES_PER_KIB or not number:
        return f"{number:,} bytes"
    return f"{number // _BYTES_PER_KIB:,} KiB"


def _timeouts(facts: Facts) -> list[str]:
    return [
        f"{name.removesuffix('_s').replace('_', ' ')} {seconds:g} s"
        + (" (found by asking)" if name in facts.timeouts_found else "")
        for name, seconds in facts.timeouts.items()
        if seconds
    ]
