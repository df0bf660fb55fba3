"""`httpmark forwarding`: each front end started before a tap and the reference, and surveyed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.firing import forwarding, forwarding_survey
from httpmark.harness.firing.forwarding import Player
from httpmark.harness.judging import forwarding_counts
from httpmark.harness.judging.forwarding_rules import RULES
from httpmark.harness.model.errors import HarnessError, NothingSelected, Unusable
from httpmark.harness.model.forwarding import FrontEnd, Heard, LeftOut, Survey
from httpmark.harness.model.progress import Events
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import front_ends, machine, manifests, sockets, starting
from httpmark.harness.servers.recording_tap import Tap
from httpmark.harness.servers.running import Running

ADDRESS = "127.0.0.1"
ORIGIN = "reference"
RESULT = "forwarding.json"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A survey, and what was heard of each case, by front end."""

    survey: Survey
    heard: dict[str, list[Heard]]


def chosen(names: Sequence[str]) -> list[Server]:
    """The servers that are named; without names, all that can be a reverse proxy.

    :raises HarnessError: there is no such server, or it cannot be a reverse proxy.
    """
    if not names:
        return [one for one in manifests.servers() if one.proxy is not None]
    found = [manifests.server(name) for name in dict.fromkeys(names)]
    for one in found:
        if one.proxy is None:
            raise HarnessError(one.trouble or f"{one.name}: its server.toml has no [proxy]")
    return found


def surveyed(servers: Sequence[Server], words: Sequence[str], *, events: Events) -> Found:
    """Play the cases at each front end.

    :param words: the cases to play, by id, number or family; all, where none is named.
    :raises HarnessError: a word names no case.
    :raises Unusable: the reference server does not start.
    """
    known = loading.load()
    facts = forwarding.facts_of("front.example", ADDRESS, 80)
    only = forwarding.known_ids(known, words, facts) if words else None
    cases, left = forwarding.chosen(known, facts, only=only)
    if not cases:
        raise NothingSelected("nothing selected: no case of that name is sent to proxies")
    found: list[FrontEnd] = []
    heard: dict[str, list[Heard]] = {}
    with origin_started() as origin:
        told = told_of(origin)
        for server in servers:
            one, of_one = surveyed_one(server, origin, known, only, events)
            found.append(one)
            heard[server.name] = of_one
    return Found(survey=_survey(known, told, left, found), heard=heard)


def _survey(
    known: Catalogue, origin: str, left: Sequence[LeftOut], found: Sequence[FrontEnd]
) -> Survey:
    return Survey(
        date=time.strftime("%Y-%m-%d", time.gmtime()), harness_version=machine.version(),
        catalogue_version=known.version, origin=origin, rules=RULES, left_out=tuple(left),
        front_ends=tuple(found),
    )  # fmt: skip


def told_of(origin: Running) -> str:
    """The origin for people."""
    return f"{origin.server.title} {origin.version or origin.server.version}"


@contextlib.contextmanager
def origin_started() -> Iterator[Running]:
    """The reference server, until the block ends."""
    server = manifests.server(ORIGIN)
    starting.for_server(server, "process")
    one = starting.start(
        server, "process", address=ADDRESS, port=sockets.free_port(ADDRESS), workers=1, cpus=None,
        run_id=_run_id(), conformance=True,
    )  # fmt: skip
    try:
        yield one
    finally:
        one.stop()


def _run_id() -> str:
    return f"forwarding{os.getpid()}"


def surveyed_one(
    server: Server,
    origin: Running,
    known: Catalogue,
    only: frozenset[str] | None,
    events: Events,
) -> tuple[FrontEnd, list[Heard]]:
    """One front end; why it cannot be used, where it cannot."""
    name, port, began = server.name, sockets.free_port(ADDRESS), time.monotonic()
    one = FrontEnd(name=name, title=server.title)
    facts = forwarding.facts_of(f"{ADDRESS}:{port}", ADDRESS, port)
    cases, _ = forwarding.chosen(known, facts, only=only)
    versions: list[str | None] = []
    try:
        with Tap(ADDRESS, sockets.free_port(ADDRESS), (origin.address, origin.port)) as tap:

            @contextlib.contextmanager
            def start() -> Iterator[Player]:
                with _started(server, tap, port, events) as proxy:
                    versions.append(proxy.version)
                    with Player(ADDRESS, port, tap, lambda: _death(proxy)) as player:
                        yield player

            events.task(name, len(cases))
            heard = forwarding_survey.survey(
                start, cases, facts=facts, advance=lambda by: events.advance(name, by)
            )
    except Unusable as error:
        events.say(f"{name} is unavailable: {error}")
        one = msgspec.structs.replace(one, version=next(iter(versions), None))
        return msgspec.structs.replace(one, unavailable=str(error)), []
    one = msgspec.structs.replace(one, version=versions[0])
    one = forwarding_counts.counted(one, heard)
    broken = sum(not _is_note(count.rule) for count in one.rules)
    seconds = time.monotonic() - began
    told = f"{broken} rule{'s' * (broken != 1)} broken"
    events.done(name, f"{one.forwarded} of {one.asked} cases forwarded, {told}")
    return msgspec.structs.replace(one, seconds=round(seconds, 1)), heard


@contextlib.contextmanager
def _started(server: Server, tap: Tap, port: int, events: Events) -> Iterator[Running]:
    """The proxy in front of the tap, until the block ends."""
    proxy = front_ends.start(
        server, origin=(ADDRESS, tap.port), address=ADDRESS, port=port, run_id=_run_id(),
        say=events.say,
    )  # fmt: skip
    try:
        tap.cut(deadline_s=1.0)  # what the wait for its start left
        yield proxy
    finally:
        proxy.stop()


def _death(proxy: Running) -> str | None:
    return None if proxy.alive() else f"died: {proxy.exit_reason()}"


def _is_note(rule: str) -> bool:
    return not next(one for one in RULES if one.id == rule).level.is_judged


def write(found: Found, folder: Path) -> None:
    """Write the survey, and the bytes of every case of which something is said.

    :raises HarnessError: the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        survey = msgspec.json.format(msgspec.json.encode(found.survey), indent=1)
        (folder / RESULT).write_bytes(survey + b"\n")
        write_heard(found.heard, folder)
    except OSError as error:
        raise HarnessError(f"{folder}: {error.strerror}") from None


def write_heard(heard: Mapping[str, Sequence[Heard]], folder: Path) -> None:
    """Write the bytes of every case of which something is said, a file for each front end.

    :raises OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, of_one in heard.items():
        lines = [msgspec.json.encode(one) + b"\n" for one in of_one if _is_kept(one)]
        (folder / f"{name}.jsonl").write_bytes(b"".join(lines))


def _is_kept(one: Heard) -> bool:
    """Whether the bytes are evidence; those that lack only Via are there in one example each."""
    return one.asked_again or any(remark.rule != "via" for remark in one.remarks)
