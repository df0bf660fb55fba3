"""What became of the canary: the request after a case that shows whether both ends agree.

It asks for a target of its own, so a mirror shows whether the server read it as the next request.
"""

from __future__ import annotations

import enum

from httpmark.harness.judging.observation import Final, Mirror, Sight
from httpmark.harness.model.cases import Case

_NO_CONTENT = (b"content-length", b"0")


class Canary(enum.Enum):
    """What became of the canary."""

    ITSELF = "answered"
    OTHERWISE = "answered as another request"
    UNANSWERED = "unanswered"
    CLOSED = "closed"
    UNSENT = "not sent"
    NONE = "none"


def fate(case: Case, sight: Sight, own: int | None) -> Canary:
    """What became of the canary if ``own`` answers belong to the case (None: not known)."""
    if not case.canary:
        return Canary.NONE
    finals = sight.answers[own:] if case.joined and own is not None else sight.after
    if case.joined and own is None:
        finals = tuple(f for f in sight.answers if answered_as_itself(f, case))
    if finals:
        is_one = len(finals) == 1 and answered_as_itself(finals[0], case)
        return Canary.ITSELF if is_one else Canary.OTHERWISE
    if sight.fault is not None or (sight.cut and (case.joined or sight.cut_after_canary)):
        return Canary.OTHERWISE
    if sight.closed:
        return Canary.CLOSED
    return Canary.UNANSWERED if case.joined or sight.canary_sent else Canary.UNSENT


def answered_as_itself(final: Final, case: Case) -> bool:
    """Whether an answer belongs to the canary: the mirror names it; without a mirror, any 2xx."""
    if not 200 <= final.response.status < 300:
        return False
    shown = final.mirror
    if shown is None or shown.target is None:
        return True
    named = b"canary-" + case.id.encode("latin-1") in shown.target
    # If bytes of the case come before the canary's method, it is a different request.
    return named and shown.method in (None, b"GET") and not _leaked(shown, case)


def _leaked(shown: Mirror, case: Case) -> bool:
    """Whether the canary was understood with content, or with fields that only the case sent."""
    if shown.content:
        return True
    sent, own = case.sent.lower(), case.canary.lower() + b"\nconnection:"
    # A library may add Content-Length: 0 to what it read without content.
    fields = [(name.lower(), value) for name, value in shown.fields or ()]
    lines = (b"\n" + name + b":" for name, value in fields if (name, value) != _NO_CONTENT)
    return any(line in sent and line not in own for line in lines)
