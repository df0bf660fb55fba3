"""How a case fails, in words that stay the same from run to run: a baseline lists these words."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

ANY = "any"
KEPT = 8  # of one family
OTHER = "other"
BETWEEN = " | "

# Early baselines list this for a family: they did not tell its failures apart. It covers any.
_UNTOLD = "fail"

# A number that counts something, or is no status code.
_MEASURED = re.compile(
    r"\b(?:\d+(?:\.\d+)?(?= (?:s|ms|[KM]iB|kB|bytes|descriptors|requests|readers|processes|cuts"
    r"|resets|connections)\b)|(?![1-5]\d\d\b(?!\.\d))\d+(?:\.\d+)?)\b"
)

# Words of earlier versions, which stored runs and baselines hold, and the words of today.
_EARLIER_WORDS = (
    (re.compile(r"\ban octet\b"), "a byte"),
    (re.compile(r"\boctet(s?)\b"), r"byte\1"),
    (re.compile(r"\bbehind\b"), "after"),
    (re.compile(r"\bdrew\b"), "got"),
    # The answer to the next request stood among those of the case.
    (
        re.compile(r"^(.+), (2\d\d); the next request is answered(?! wrongly)"),
        r"\1; the next request gets \2",
    ),
    (
        re.compile(r"^([^,;]+), ([^;]+); the next request is answered wrongly"),
        r"\1; the next request wrongly gets \2",
    ),
)


@functools.lru_cache(maxsize=4096)  # a suite of 150,000 exchanges fails in a few ways
def failure_mode(actual: str) -> str:
    """How a case fails: the verdict's words for what came, without what differs from run to run.

    Explanations in brackets are left out. A measured number becomes N; a status code stays. FIN and
    RST are both written as a close, because which one comes depends on the moment. Words of earlier
    versions become those of today.
    """
    parts, depth = [""], 0
    for character in actual:
        depth += (character == "(") - (character == ")" and depth > 0)
        if character == ";" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    head, *ends = (_MEASURED.sub("N", part.partition(" (")[0].strip()) for part in parts)
    mode = "; ".join((head, *("closed" if end == "reset" else end for end in ends)))
    for earlier, today in _EARLIER_WORDS:
        mode = earlier.sub(today, mode)
    return mode


def most_frequent(modes: Mapping[str, int]) -> dict[str, int]:
    """The ``KEPT`` most frequent failure modes, and the sum of the others."""
    ranked = sorted(modes.items(), key=lambda item: (-item[1], item[0]))
    kept = dict(sorted(ranked[:KEPT]))
    others = sum(number for _, number in ranked[KEPT:])
    return {**kept, OTHER: others} if others else kept


def as_outcome(modes: Mapping[str, int]) -> str:
    """A family's failure modes as one outcome: ``200; closed | silence until the deadline``."""
    return BETWEEN.join(sorted(modes)) or _UNTOLD


def covers(listed: str, found: str, *, family: bool) -> bool:
    """Whether an outcome that a baseline lists covers the one that was found.

    ``any`` covers all. For a family, every failure mode that was found must be listed. A mode
    listed without a semicolon covers those that say more after one.

    :param family: the outcome found is that of many requests.
    """
    if listed == ANY or (family and listed == _UNTOLD):
        return True
    known = [failure_mode(one) for one in listed.split(BETWEEN)]
    return all(
        one in known or one.partition("; ")[0] in known
        for one in map(failure_mode, found.split(BETWEEN))
    )
