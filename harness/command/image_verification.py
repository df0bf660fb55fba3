"""`httpmark images verify`: each server built and held to its contract, and the rows printed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.progress import Events
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import certificates, scratch_folders, starting, verification
from httpmark.harness.servers.verification import Row, Seen, Verified

ADDRESS = "127.0.0.1"
TASK = "servers"
_NAME_COLUMNS = 16
_VERDICT_COLUMNS = 9


def verify_all(servers: Sequence[Server], runtime: str, *, events: Events) -> list[Verified]:
    """Verify each of these servers in turn; one that cannot be built does not stop the rest."""
    events.task(TASK, len(servers))
    found = []
    with scratch_folders.folder("certificate") as folder:
        pair = certificates.make(folder, address=ADDRESS)
        for server in servers:
            found.append(_verify(server, runtime, pair, events))
            events.advance(TASK, 1)
    events.done(TASK, ", ".join(f"{one.name} {one.verdict}" for one in found))
    return found


def at_hand(servers: Iterable[Server], word: str) -> tuple[list[Server], dict[str, str]]:
    """The servers that can be had here under a runtime's word, and why the others cannot."""
    found, lacking = [], {}
    for server in servers:
        try:
            starting.for_server(server, word)
        except Unusable as error:
            lacking[server.name] = str(error)
        else:
            found.append(server)
    return found, lacking


def _verify(server: Server, word: str, pair: certificates.Pair, events: Events) -> Verified:
    runtime = word
    try:
        runtime = starting.for_server(server, word)
        starting.prepare(server, runtime, say=events.say)
    except Unusable as error:
        row = Row(name="build", verdict=Seen.NO_START, seen=str(error))
        return Verified(name=server.name, runtime=runtime, version=None, rows=(row,))
    how = verification.Start(runtime, ADDRESS, f"verify{os.getpid()}", pair)
    return verification.verify(server, how)


def lines(found: Sequence[Verified]) -> Iterator[str]:
    """The rows of each server, for people."""
    for one in found:
        yield f"{one.name} ({one.runtime}): {one.verdict}"
        for row in one.rows:
            yield f"  {row.name:{_NAME_COLUMNS}} {row.verdict:{_VERDICT_COLUMNS}} {row.seen}"
            if row.mend:
                yield f"  {'':{_NAME_COLUMNS}} {'':{_VERDICT_COLUMNS}} do: {row.mend}"


def as_values(found: Sequence[Verified]) -> list[dict[str, Any]]:
    """The same for ``--json``."""
    return [{**msgspec.to_builtins(one), "verdict": str(one.verdict)} for one in found]


def exit_code(found: Sequence[Verified]) -> int:
    """1 where a promise is broken, 3 where a server cannot be built or started, else 0."""
    kinds = {one.verdict for one in found}
    return 1 if Seen.BROKEN in kinds else 3 if Seen.NO_START in kinds else 0
