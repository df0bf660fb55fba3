"""The demands on one answer in an expectation: ``content``, ``says close``, ``prompt``, ..."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from httpmark.harness.catalogue.expectation import Demand
from httpmark.harness.http import masking, response_reader
from httpmark.harness.judging import canary
from httpmark.harness.judging.answer_words import REJECTED, status_in
from httpmark.harness.judging.observation import Final, Played, Sight


def holds(played: Played, demand: Demand, final: Final) -> bool | None:
    """Whether a demand holds; None where it cannot be seen on this server."""
    return _DEMANDS[demand.kind](played, demand, final)


def why_unseen(demand: Demand) -> str | None:
    """Why a demand cannot be seen, where that is not the mirror."""
    return _UNSEEN_INTERIM if demand.kind == "prompt" else None


_UNSEEN_INTERIM = "an interim answer that is no 100 came where one was waited for"


def _list(values: list[bytes]) -> bytes:
    """Field lines as one comma list, whitespace around commas apart (RFC 9110 5.3)."""
    return b",".join(piece.strip(b" \t") for value in values for piece in value.split(b","))


def _values(pairs: tuple[tuple[bytes, bytes], ...], name: str) -> list[bytes]:
    wanted = name.encode("latin-1")
    return [value for key, value in pairs if key.lower() == wanted]


def _held(demand: Demand, found: list[bytes]) -> bool:
    if not found:
        return False
    if demand.how == "=":
        return _list(found) == _list([demand.text])
    if demand.how == "~":
        return re.fullmatch(demand.text, b", ".join(found), re.DOTALL) is not None
    return True


def _mirrored(played: Played, demand: Demand, final: Final) -> bool | None:
    shown = final.mirror if played.case.place == "mirror" else None
    pairs = None
    if shown is not None:
        pairs = shown.trailers if "trailer" in demand.kind else shown.fields
    if pairs is None:
        return True if demand.kind == "field?" else None
    found = _values(pairs, demand.name)
    if demand.kind.startswith("no "):
        # A field that the user has sent with each request is no part of the case.
        found = [value for value in found if not masking.is_mask(value)]
        return not (_held(demand, found) if demand.how else found)
    return _held(demand, found)


def _shown(played: Played, demand: Demand, final: Final) -> bool | None:
    shown = final.mirror if played.case.place == "mirror" else None
    name = demand.kind.removeprefix("no ").removesuffix("?")
    value: bytes | None = getattr(shown, name) if shown is not None else None
    if demand.kind.endswith("?") and value is None:
        return True
    if demand.kind.startswith("no "):
        # Holds, too, where the answer comes from another place or does not show the value.
        return value != demand.text
    return None if value is None else value == demand.text


def _content(played: Played, demand: Demand, final: Final) -> bool | None:
    found = _understood_content(played, final)
    if found is not None:
        return found == demand.text
    # Framing is proven by the answer to what comes next, even where the content is not shown.
    is_framed = canary.fate(played.case, played.sight, 1) is canary.Canary.ITSELF
    return True if is_framed or _left_over_refused(played.sight, final) else None


def _left_over_refused(sight: Sight, final: Final) -> bool:
    """Whether the bytes after the message were read as a request of their own, and refused."""
    answers = sight.answers
    after = [later for here, later in itertools.pairwise(answers) if here is final]
    return bool(after) and after[0].response.status in REJECTED


def _decoded(played: Played, demand: Demand, final: Final) -> bool | None:
    found = _understood_content(played, final)
    return None if found is None else found == demand.text


def _not_before(played: Played, demand: Demand, final: Final) -> bool:
    first_us = played.exchange.first_us
    return first_us is None or first_us >= 1000 * int(demand.name)


def _continued(final: Final) -> int:
    """How many 100 came before it: other interim answers may come at any time (RFC 9110 15.2)."""
    return sum(interim.status == 100 for interim in final.interims)


def _has(played: Played, demand: Demand, final: Final) -> bool:
    return _held(demand, final.response.values(demand.name.encode("latin-1")))


def _understood_content(played: Played, final: Final) -> bytes | None:
    """The content the server understood, where it shows it."""
    if played.case.place == "mirror":
        shown = final.mirror
        return shown.content if shown is not None else None
    if played.case.place == "body" and 200 <= final.response.status < 300:
        return final.response.content
    return None


def _is_prompt(sight: Sight) -> bool | None:
    """Before each write (the canary apart), as many answers had begun as writes were made earlier.

    A 100 counts as an answer that has begun. Another interim answer lets the client go on, too,
    but it asks for nothing: None where only such an answer had come.
    """
    writes = sight.received_at_writes[: -1 if sight.canary_sent else None]

    def is_prompt(counted: Callable[[response_reader.Response], bool]) -> bool:
        starts = [
            response.head[0]
            for final in sight.answers
            for response in (*final.interims, final.response)
            if counted(response)
        ]
        return all(
            sum(start < received for start in starts) >= number
            for number, received in enumerate(writes)
        )

    if is_prompt(lambda response: not response.interim or response.status == 100):
        return True
    if is_prompt(lambda response: True):
        return None
    return False


_DEMANDS: dict[str, Callable[[Played, Demand, Final], bool | None]] = {
    "content": _content,
    "decoded": _decoded,
    "content?": lambda played, demand, final: _content(played, demand, final) is not False,
    "field": _mirrored,
    "field?": _mirrored,
    "no field": _mirrored,
    "trailer": _mirrored,
    "no trailer": _mirrored,
    "method": _shown,
    "target": _shown,
    "authority": _shown,
    "version": _shown,
    "method?": _shown,
    "target?": _shown,
    "authority?": _shown,
    "no content": _shown,
    "no method": _shown,
    "no target": _shown,
    "no authority": _shown,
    "no version": _shown,
    "any target": lambda played, demand, final: True,
    "any method": lambda played, demand, final: True,
    "not before": _not_before,
    "beyond": lambda played, demand, final: bool(demand.name),
    "status": lambda played, demand, final: status_in(demand.name, final.response.status),
    "no status": lambda played, demand, final: not status_in(demand.name, final.response.status),
    "has": _has,
    "lacks": lambda played, demand, final: not final.response.values(demand.name.encode("latin-1")),
    "body": lambda played, demand, final: (
        re.search(demand.text, final.response.content, re.DOTALL) is not None
    ),
    "body lacks": lambda played, demand, final: demand.text not in final.response.content,
    "nobody": lambda played, demand, final: not final.response.content,
    "says close": lambda played, demand, final: final.response.announces_close,
    "keeps": lambda played, demand, final: not final.response.announces_close,
    "with 100": lambda played, demand, final: _continued(final) > 0,
    "with one 100": lambda played, demand, final: _continued(final) == 1,
    "prompt": lambda played, demand, final: _is_prompt(played.sight),
    "before fin": lambda played, demand, final: (
        played.sight.received_at_fin is not None
        and final.response.head[1] <= played.sight.received_at_fin
    ),
    "no 100": lambda played, demand, final: _continued(final) == 0,
}
