"""The search: it finds a planted fault, makes it small, and keeps it as a scenario that fails."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from httpmark.harness import catalogue, cli, conformance, fuzz, observation, request_reader
from httpmark.harness.model import HarnessError
from httpmark.harness.probe import Talker

from . import peers
from .rogue_matrix import running


def target(port: int, *capabilities: str) -> conformance.Target:
    return conformance.Target(
        name="peer", address="127.0.0.1", port=port, host=f"127.0.0.1:{port}",
        capabilities=("hello", *capabilities),
    )  # fmt: skip


def finds(
    one: conformance.Target, seconds: float = 6.0, most: int | None = None
) -> list[fuzz.Find]:
    told: list[fuzz.Find] = []
    with Talker(one.probe(in_flight=1)) as talker:
        found, sent = fuzz.search(
            fuzz.Searcher(one, talker), seconds=seconds, seed=1, tell=told.append, most=most
        )
    assert sent
    assert told == found
    return found


def careless(connection: socket.socket) -> None:
    """200 to anything that ends in an empty line."""
    while peers.head(connection):
        connection.sendall(peers.OK)


def test_a_careless_server_accepts_and_the_example_is_small() -> None:
    with peers.peer(careless) as peer:
        found = finds(target(peer.port), seconds=4.0)
    accepted = [find for find in found if find.kind is fuzz.Kind.ACCEPTED]
    assert accepted
    assert min(len(find.octets) for find in accepted) < 60


def test_a_silent_server_hangs_on_a_whole_message() -> None:
    with peers.peer(peers.mute) as peer:
        found = finds(target(peer.port), seconds=3.0)
    assert {find.kind for find in found} == {fuzz.Kind.HUNG}


@pytest.mark.parametrize("bug", ["B21", "B26"])
def test_a_planted_bug_is_found_and_stays_found(bug: str, tmp_path: Path) -> None:
    with running(bug) as port:
        one = target(port, "body", "mirror")
        [find] = finds(one, seconds=240.0, most=1)
        assert find.kind is fuzz.Kind.ACCEPTED
        saved = fuzz.save(find, tmp_path / "found", host=one.host, command="httpmark fuzz")
        known = catalogue.load(tmp_path)
        [family] = known.families.values()
        assert (family.suite, family.id) == ("found", find.slug)
        [planned] = known.planned(family.id, one.facts())
        assert planned.case.sent.startswith(find.octets)
    assert saved.is_file()


def test_the_unmodified_rogue_agrees_with_the_grammar() -> None:
    with running(None) as port:
        assert finds(target(port, "body", "mirror"), seconds=5.0) == []


Mirror = dict[str, object]


def mirroring(spoil: Callable[[Mirror], Mirror]) -> peers.Handler:
    """Reads requests as the grammar does and mirrors them, with one thing told otherwise."""

    def text(octets: bytes) -> str:
        return base64.b64encode(octets).decode()

    def pairs(fields: tuple[tuple[bytes, bytes], ...]) -> list[list[str]]:
        return [[text(name.title()), text(value)] for name, value in fields]

    def handler(connection: socket.socket) -> None:
        sent = b""
        while piece := connection.recv(65536):
            sent += piece
            for one in request_reader.read(sent).requests:
                if not one.valid:
                    connection.sendall(peers.BAD)
                    return
                if not one.whole:
                    break
                shown: Mirror = {
                    "method": text(one.method), "target": text(one.target), "authority": None,
                    "version": None, "content": text(one.content(sent)),
                    "fields": pairs(one.fields), "trailers": pairs(one.trailers),
                }  # fmt: skip
                own = shown if b"canary" in one.target else spoil(shown)
                content = json.dumps(own).encode()
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)
                )
            read = request_reader.read(sent)
            sent = sent[read.requests[-1].start if not read.requests[-1].whole else len(sent) :]

    return handler


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        ({}, None),
        ({"content": None, "fields": None, "trailers": None}, None),  # not computed
        ({"content": ""}, "content"),
        ({"fields": []}, "fields"),
        ({"trailers": []}, "trailers"),
    ],
)
def test_a_mirror_is_compared_in_all_it_computes(spoiled: Mirror, said: str | None) -> None:
    with peers.peer(mirroring(lambda shown: {**shown, **spoiled})) as peer:
        found = finds(target(peer.port, "mirror"), seconds=20.0 if said else 3.0, most=1)
    assert [find.kind for find in found] == ([fuzz.Kind.MISREAD] if said else [])
    assert all(find.actual.endswith(f"mirrored other {said}") for find in found)


def test_a_mirrored_value_is_compared_exactly_and_in_order() -> None:
    sent = b"GET /mirror HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: a  b\r\nx:\t2\r\n\r\n"
    [request] = request_reader.read(sent).requests

    def told(*fields: tuple[bytes, bytes]) -> tuple[str, ...]:
        shown = observation.Mirror(None, None, None, None, None, fields, None, None)
        return fuzz.misread(sent, request, shown)

    assert told((b"y", b"a  b"), (b"X", b"1, 2")) == ()  # no order between names; one list
    assert told((b"x", b"1"), (b"x", b"2"), (b"Y", b"a  b"), (b"Host", b"a")) == ()
    assert told((b"x", b"2"), (b"x", b"1"), (b"y", b"a  b")) == ("fields",)
    assert told((b"x", b"1"), (b"x", b"2"), (b"y", b"a b")) == ("fields",)
    assert told((b"x", b"1"), (b"x", b"2"), (b"y", b"a  b"), (b"z", b"")) == ("fields",)


def test_servers_are_compared_two_by_two() -> None:
    with peers.peer(careless) as a, peers.peer(careless) as b, peers.peer(peers.closing(b"")) as c:
        ones = {name: target(peer.port) for name, peer in (("a", a), ("b", b), ("c", c))}
        talkers = {name: Talker(one.probe(in_flight=1)) for name, one in ones.items()}
        try:
            grid, sent = fuzz.agreement(
                {name: fuzz.Searcher(ones[name], talkers[name]) for name in ones},
                seconds=2.0, seed=1,
            )  # fmt: skip
        finally:
            for talker in talkers.values():
                talker.__exit__()
    assert sent
    assert {pair: agreed == compared for pair, (agreed, compared) in grid.items()} == {
        ("a", "b"): True, ("a", "c"): False, ("b", "c"): False
    }  # fmt: skip


@pytest.mark.parametrize("octet", range(256))
def test_any_octet_of_a_find_survives_its_file(octet: int, tmp_path: Path) -> None:
    octets = b"GET /" + bytes((octet,)) + b"'{h}\\x00 HTTP/1.1\r\nHost: a:1\r\n\r\n"
    find = fuzz.Find(fuzz.Kind.ACCEPTED, "request line", octets, "200")
    fuzz.save(find, tmp_path, host="a:1", command="x")
    known = catalogue.load(tmp_path)
    one = target(1)
    facts = msgspec.structs.replace(one.facts(), host="a:1")
    [planned] = known.planned(find.slug, facts)
    assert planned.case.steps[0].data == octets


def test_the_command_says_its_seed_and_saves_what_it_found(tmp_path: Path) -> None:
    with peers.peer(careless) as peer:
        result = CliRunner().invoke(
            cli.httpmark,
            ["fuzz", f"http://127.0.0.1:{peer.port}/", "--seconds", "3", "--seed", "5",
             "--out", str(tmp_path / "found")],
        )  # fmt: skip
    assert result.output.startswith("seed 5\n")
    assert result.exit_code == 1
    assert list((tmp_path / "found").glob("found-accepted-*.toml"))


def test_nobody_there_is_said() -> None:
    with peers.peer(peers.mute) as peer:
        pass
    result = CliRunner().invoke(cli.httpmark, ["fuzz", f"http://127.0.0.1:{peer.port}/"])
    assert isinstance(result.exception, HarnessError)
