"""Crashes in words: what the server did, of what, and how it is done again."""

from __future__ import annotations

from collections.abc import Iterable

from httpmark.harness.model.crashes import CRASH, Blame, Crash, CrashKind
from httpmark.harness.model.run import ServerResult

NAMELESS = "crash"
"""The id of the finding where no single case is to blame."""

HUNG = "hung"
"""How a hang is listed in a baseline; a death is listed by its signal or exit code."""

_NAMED_MAX = 8
_FIRST_MAX = 3  # in the sentence about a server
_DOES = {CrashKind.DIED: "dies", CrashKind.HUNG: "hangs"}
_DID = {CrashKind.DIED: "died", CrashKind.HUNG: "hung"}


def does(crash: Crash) -> str:
    """``dies`` or ``hangs``."""
    return _DOES[crash.kind]


def outcome(crash: Crash) -> str:
    """How it ended, as a baseline lists it."""
    return HUNG if crash.kind is CrashKind.HUNG else crash.how


def told(crash: Crash) -> str:
    """What happened, and what is known of the cause, in one sentence or two."""
    did = f"the server {_DID[crash.kind]} ({crash.how})"
    requests = _requests(crash.requests)
    if crash.blame is Blame.ALONE:
        text = (
            f"the server {does(crash)} of this request: {crash.how}. Asked again alone, after a "
            f"fresh start, it did so again"
        )
    elif crash.blame is Blame.SEQUENCE:
        text = f"{did} after these {requests} in this order, and did so again; " + (
            "none of them does it alone"
            if crash.is_proven
            else "there was no time to ask each of them alone"
        )
    elif crash.blame is Blame.NOT_AGAIN:
        text = (
            f"{did} after these {requests}; asked again one by one, none of them does it again. "
            "The cause may be chance, or several requests at once"
            if crash.is_proven
            else f"{did} after these {requests}; there was no time to ask each of them again"
        )
    elif crash.family:
        text = f"{did} while this program was played; a program is not played again"
    else:
        text = (
            f"{did} with {requests} in flight, any of which may be the cause"
            if crash.requests
            else f"{did} with nothing in flight"
        ) + (f". Nothing could be asked again: {crash.why_not}" if crash.why_not else "")
    return text if crash.went_on else f"{text}. The rest was not asked"


def _requests(number: int) -> str:
    return f"{number:,} request{'' if number == 1 else 's'}"


def named(crash: Crash) -> str:
    """The ids of the cases that it is about, the first few."""
    more = len(crash.cases) - _NAMED_MAX
    names = ", ".join(crash.cases[:_NAMED_MAX])
    return f"{names} and {more} more" if more > 0 else names


def is_crash(id: str) -> bool:
    """Whether a finding with this id is about a crash."""
    return id == NAMELESS or id.endswith(CRASH)


def fewest(crash: Crash) -> str:
    """How few bytes do the same, and the line that sends them; empty where fewer are not known."""
    if not crash.fewest or not crash.by_hand:
        return ""
    return f"{crash.fewest} of {crash.octets} bytes do the same:\n{crash.by_hand[-1]}"


def last_words(crash: Crash) -> list[str]:
    """What the server wrote last, each line marked as its own."""
    if not crash.last_words:
        return ["the server wrote nothing before it"]
    return ["the server's own last words:", *(f"| {line}" for line in crash.last_words)]


def by_entry(crashes: Iterable[Crash]) -> dict[tuple[str, str], list[Crash]]:
    """Crashes by the suite and the entry of the catalogue that they are blamed on; those that are
    blamed on none together."""
    found: dict[tuple[str, str], list[Crash]] = {}
    for crash in crashes:
        found.setdefault((crash.suite, crash.family) if crash.family else ("", ""), []).append(
            crash
        )
    return found


def of_server(server: ServerResult) -> str:
    """What a server did and of what, for after its name."""
    alone = [crash for crash in server.crashes if crash.blame is Blame.ALONE]
    others = [crash for crash in server.crashes if crash.blame is not Blame.ALONE]
    parts = []
    for kind in CrashKind:
        some = [crash for crash in alone if crash.kind is kind]
        if some:
            how = ", ".join(dict.fromkeys(outcome(crash) for crash in some))
            names = [name for crash in some for name in crash.cases or ("a request",)]
            more = f" and {len(names) - _FIRST_MAX} more" if len(names) > _FIRST_MAX else ""
            shown = ", ".join(names[:_FIRST_MAX])
            how = f" ({how})" if kind is CrashKind.DIED else ""
            parts.append(f"{_DOES[kind]} of {_requests(len(some))}{how}: {shown}{more}")
    for crash in others[:1]:
        times = f" {len(others)} times" if len(others) > 1 else ""
        parts.append(f"{_DID[crash.kind]}{times} ({crash.how}), and no single request is proven")
    return "; it ".join(parts)
