"""The words for one answer in an expectation: ``ACC``, ``REJ``, ``4xx``, ..."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from httpmark.harness.judging.observation import Final

# REJ: any 4xx, and the 5xx that a refusal may have: 501 for a method or coding, 505 for a version.
REJECTED = frozenset((*range(400, 500), 501, 505))
# PARSED: statuses that need the request to be understood; not 400, 408, 414, 431 and the like.
PARSED = frozenset(
    (*range(200, 400), *range(401, 407), *range(409, 414), 415, 416, 417, 421, 422, 426, 428, 429,
     451, 501)
)  # fmt: skip


def _redirected(sent: bytes, final: Final) -> bool:
    """301 or 308 to the correctly encoded target (RFC 9112 3)."""
    if final.response.status not in (301, 308):
        return False
    places = final.response.values(b"location")
    line = re.match(rb"(?:\r\n)*[!-~]+[ \t]+(.*?)[ \t]+HTTP/", sent, re.DOTALL)
    if len(places) != 1 or line is None:
        return False
    if re.search(rb"%(?![0-9A-Fa-f]{2})|[^!#-;=?-Z_a-z~%\[\]]", places[0]):
        return False
    path = re.sub(rb"^[a-z]+://[^/?#]*", b"", places[0])
    return unquote_to_bytes(path) == unquote_to_bytes(line[1])


def _accepted(final: Final, own: frozenset[int]) -> bool:
    return 200 <= final.response.status < 300 or final.response.status in own


def _refused(final: Final, own: frozenset[int]) -> bool:
    return final.response.status in REJECTED and final.response.status not in own


_WORDS: dict[str, Callable[[bytes, Final, frozenset[int]], bool]] = {
    "ACC": lambda sent, final, own: _accepted(final, own),
    "PARSED": lambda sent, final, own: final.response.status in PARSED,
    "R400": lambda sent, final, own: final.response.status == 400,
    "R400C": lambda sent, final, own: final.response.status == 400,
    "REJ": lambda sent, final, own: _refused(final, own),
    "REJ301": lambda sent, final, own: _refused(final, own) or _redirected(sent, final),
    "EITHER": lambda sent, final, own: _accepted(final, own) or final.response.status in REJECTED,
    "CLOSE": lambda sent, final, own: False,
    "ONE": lambda sent, final, own: True,
    "NO101": lambda sent, final, own: final.response.status != 101,
}


def fits_word(word: str, sent: bytes, final: Final, own: frozenset[int] = frozenset()) -> bool:
    """Whether an answer is what a word asks for. A word may also list statuses.

    :param sent: the bytes of the case, for a redirect to its target.
    :param own: statuses other than 2xx that the application gives to good requests at this place:
        they show that the request was accepted.
    """
    if word in _WORDS:
        return _WORDS[word](sent, final, own)
    return status_in(word, final.response.status)


def status_in(words: str, status: int) -> bool:
    """Whether a status is among words like ``400,431`` or ``4xx``."""
    return any(
        int(word[0]) == status // 100 if word.endswith("xx") else int(word) == status
        for word in words.split(",")
    )
