"""What the placeholders of scenario texts stand for on a target."""

from __future__ import annotations

import re

from httpmark.harness.catalogue import notation
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.model.cases import STATIC_FILE_FACTS, Facts
from httpmark.harness.model.servers import LIMITS, TIMEOUTS

_CONTENT = re.compile(r"(?is)\bPOST\b.*(?:content.?length|transfer.?encoding|expect)")


def place(rule: Rule, facts: Facts) -> str:
    """The capability whose path ``{p}`` stands for: ``mirror``, ``body`` or ``hello``."""
    if rule.place != "auto":
        return rule.place
    if "mirror" in facts.capabilities:
        return "mirror"
    texts = "".join((*rule.sends, *rule.steps, *(text for _, text in rule.let)))
    if "body" in facts.capabilities and _CONTENT.search(texts):
        return "body"
    return "hello"


def values(rule: Rule, facts: Facts, case: str) -> dict[str, notation.Value | None]:
    """What placeholders stand for, except those that vary.

    :raises notation.Unknown: a ``let`` needs what the target does not declare.
    """
    where = place(rule, facts)
    where_post = facts.posted_to if where == "hello" else f"/{where}"
    known: dict[str, notation.Value | None] = {
        "p": (facts.path if where == "hello" else f"/{where}").encode("latin-1"),
        "hello": facts.path.encode("latin-1"),
        POST_PATH: None if where_post is None else where_post.encode("latin-1"),
        "big": (
            "/big"
            if {"behave", "behave.big"}.intersection(facts.capabilities)
            else facts.path
            if where == "hello"
            else f"/{where}"
        ).encode("latin-1"),
        "h": facts.host.encode("latin-1"),
        # Where a path with a query is another one, requests cannot be told apart by a number.
        _NO_QUERY: 1 if where == "hello" and not facts.takes_query else None,
        _HEADER: "".join(f"{line}\r\n" for line in facts.header).encode("latin-1"),
        "host": _host(facts.host).encode("latin-1"),
        "port": b"%d" % facts.port,
        "scheme": facts.scheme.encode("latin-1"),
        "id": case.encode("latin-1"),
        "canary": canary_request(facts, case),
    }
    known["websocket"] = b"/websocket" if "websocket" in facts.capabilities else known["p"]
    known["events"] = b"/events" if "events" in facts.capabilities else known["p"]
    known["file"] = b"/static/ok.html" if "static" in facts.capabilities else known["p"]
    known |= {f"limit.{name}": facts.limits.get(name) for name in LIMITS}
    known |= {f"timeout.{name}": _milliseconds(facts.timeouts.get(name)) for name in TIMEOUTS}
    known |= dict.fromkeys(STATIC_FILE_FACTS)
    known |= {name: text.encode("latin-1") for name, text in facts.values.items()}
    return known


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(1000 * seconds)


POST_PATH = "post_path"
"""What ``{p}`` stands for after POST: an application takes it at few paths."""
# A request may follow an escape, as in \r\nPOST, where no edge of a word is.
_POST_TO_PLACE = re.compile(r"(?<![A-Z])POST \{p\}")
_TELLS_APART = re.compile(r"\?id=(?:[0-9]+|\{i\})")
_NO_QUERY = "no query"
_HEADER = "header"
_HOST_LINE = r"Host: {h}\r\n"


def filled(text: str, known: dict[str, notation.Value | None]) -> bytes:
    """The bytes of a text, with the target's own field lines after every Host line.

    They are put into the text first, so that lengths computed from it count them.

    :raises notation.Unknown: the text asks for a value that is not known.
    """
    text = _POST_TO_PLACE.sub(f"POST {{{POST_PATH}}}", text)
    if known.get(_NO_QUERY):
        text = _TELLS_APART.sub("", text)
    if known.get(_HEADER):
        text = text.replace(_HOST_LINE, f"{_HOST_LINE}{{{_HEADER}}}")
    return notation.expand(text, known)


def _host(host: str) -> str:
    """A Host value without the port."""
    return re.sub(r":[0-9]*$", "", host) if not host.endswith("]") else host


def canary_request(facts: Facts, case: str) -> bytes:
    """The valid request that names a case.

    The right answer to it shows that client and server agree where the last message ended.
    """
    return marked_request(facts, f"canary-{case}")


def marked_request(facts: Facts, mark: str) -> bytes:
    """A GET that the answer can be told by: the mirror shows a target that ends in ``mark``.

    Where the path is another one with a query, it goes without the mark.
    """
    where = "/mirror" if "mirror" in facts.capabilities else facts.path
    if where != facts.path or facts.takes_query:
        where += f"{'&' if '?' in where else '?'}{mark}"
    return f"GET {where} HTTP/1.1\r\n{facts.host_lines}\r\n".encode("latin-1")


def case_values(
    rule: Rule, facts: Facts, case: str, varied: dict[str, notation.Value]
) -> dict[str, notation.Value | None]:
    """What all placeholders of one case stand for.

    :raises notation.Unknown: a ``let`` needs what the target does not declare.
    """
    known = {**values(rule, facts, case), **varied}
    for name, text in rule.let:
        known[name] = filled(text, known)
    return known
