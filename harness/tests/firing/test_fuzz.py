"""The search: it finds a planted fault, makes it small, and keeps it as a scenario that fails."""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from httpmark.harness.catalogue import loading
from httpmark.harness.command import cli
from httpmark.harness.firing import found_scenarios, fuzz, server_agreement, strategies, targets
from httpmark.harness.firing.probe import RunningProbe
from httpmark.harness.http import request_reader
from httpmark.harness.http.request_reader import Broken
from httpmark.harness.judging import observation
from httpmark.harness.model.errors import HarnessError, NothingSelected
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.rogue_matrix import running


def target(port: int, *capabilities: str) -> targets.Target:
    return targets.Target(
        name="peer", address="127.0.0.1", port=port, host=f"127.0.0.1:{port}",
        capabilities=("hello", *capabilities),
    )  # fmt: skip


def finds(one: targets.Target, seconds: float = 6.0, most: int | None = None) -> list[fuzz.Find]:
    told: list[fuzz.Find] = []
    with RunningProbe(one.probe(in_flight=1)) as probe:
        found, sent = fuzz.search(
            fuzz.Searcher(one, probe), seconds=seconds, seed=1, tell=told.append, most=most
        )
    assert sent
    assert told == found
    return found


def careless(connection: socket.socket) -> None:
    """200 to anything that ends in an empty line."""
    while peers.head(connection):
        connection.sendall(peers.OK)


@pytest.mark.process
def test_a_careless_server_accepts_and_the_example_is_small() -> None:
    with peers.peer(careless) as peer:
        found = finds(target(peer.port), seconds=4.0)
    accepted = [find for find in found if find.kind is fuzz.Kind.ACCEPTED]
    assert accepted
    assert min(len(find.octets) for find in accepted) < 60


@pytest.mark.process
def test_a_silent_server_hangs_on_a_whole_message() -> None:
    with peers.peer(peers.mute) as peer:
        found = finds(target(peer.port), seconds=3.0)
    assert {find.kind for find in found} == {fuzz.Kind.HUNG}


@pytest.mark.process
@pytest.mark.parametrize(
    ("bug", "clause"),
    [
        ("B21", "RFC 9112 3.2"),
        pytest.param("B26", "RFC 9112 5.1", marks=pytest.mark.nightly),
        pytest.param("B34", "RFC 9112 6.3", marks=pytest.mark.nightly),
    ],
)
def test_a_planted_bug_is_found_and_stays_found(bug: str, clause: str, tmp_path: Path) -> None:
    with running(bug) as port:
        one = target(port, "body", "mirror")
        [find] = finds(one, seconds=240.0, most=1)
        assert find.kind is fuzz.Kind.ACCEPTED
        saved = found_scenarios.save(
            find, tmp_path / "found", host=one.host, command="httpmark fuzz"
        )
        known = loading.load(tmp_path)
        [family] = known.families.values()
        assert (family.suite, family.id) == ("found", find.slug)
        [planned] = known.planned(family.id, one.facts())
        assert planned.case.sent.startswith(find.octets)
    assert saved.is_file()
    assert (str(planned.level), family.clause) == ("MUST", clause)


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
def test_servers_are_compared_two_by_two() -> None:
    with peers.peer(careless) as a, peers.peer(careless) as b, peers.peer(peers.closing(b"")) as c:
        ones = {name: target(peer.port) for name, peer in (("a", a), ("b", b), ("c", c))}
        probes = {name: RunningProbe(one.probe(in_flight=1)) for name, one in ones.items()}
        try:
            grid, sent = server_agreement.agreement(
                {name: fuzz.Searcher(ones[name], probes[name]) for name in ones},
                seconds=8.0, seed=1,
            )  # fmt: skip
        finally:
            for probe in probes.values():
                probe.__exit__()
    assert sent
    assert {pair: agreed == compared for pair, (agreed, compared) in grid.items()} == {
        ("a", "b"): True, ("a", "c"): False, ("b", "c"): False
    }  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without finds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(loading.FOUND_SET, raising=False)
    return tmp_path


@pytest.mark.process
def test_what_is_found_is_told_saved_and_known_to_all_commands(here: Path) -> None:
    with peers.peer(careless) as peer:
        url = f"http://127.0.0.1:{peer.port}/"
        result = CliRunner().invoke(
            cli.httpmark, ["fuzz", url, "--seconds", "3", "--seed", "5", "--path", "/a?b&c"]
        )
        assert result.output.startswith("seed 5\n")
        assert result.exit_code == 1
        path, *_ = sorted((here / "scenarios" / "found").glob("found-accepted-*.toml"))
        command = f"httpmark fuzz {url} --path '/a?b&c' --seconds 3 --seed 5"
        replay = f"httpmark replay {path.stem} {url} --path '/a?b&c'"
        text = path.read_text("utf-8")
        assert text.startswith(f"# Found by: {command}\n# Again: {replay}\n# Again: python3 -c ")
        assert command in result.output
        assert replay in result.output
        assert "# Again: printf '" in text
        told = CliRunner().invoke(cli.httpmark, ["explain", path.stem])
        assert told.output.startswith(f"{path.stem} (FOUND-")
        again = CliRunner().invoke(cli.httpmark, ["replay", path.stem, url])
        assert re.search("verdict:  (fail|warn)", again.output)


def test_the_command_finds_in_a_folder_that_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    octets = b"GET /a HTTP/1.1\r\nHost: a:1\r\nX : y\r\n\r\n"
    find = fuzz.Find(fuzz.Kind.ACCEPTED, "field section", octets, "200")
    found_scenarios.save(find, here / "mine", host="a:1", command="x")
    assert find.slug not in loading.load().families
    monkeypatch.setenv(loading.FOUND_SET, "mine")
    known = loading.load()
    assert known.families[find.slug].suite == "found"
    assert known.version == loading.load(loading.FOLDER).version
    (here / "mine" / "x.toml").write_text('suite = "rfc"\n')
    with pytest.raises(HarnessError, match=r"mine/x\.toml"):
        loading.load()


class Planted(fuzz.Searcher):
    """A search without a wire: the target accepts what breaks one of these rules."""

    def __init__(self, *rules: Broken) -> None:
        self.facts = target(1).facts()
        self.place = b"/mirror"
        self.rules = rules

    @property
    def requests(self) -> strategies.Requests:
        """Small ones: what a search does with its finds is no matter of what else is in them."""
        lines = st.lists(st.sampled_from((b"A: b", b"A b", b"C: d\r\nE: f")), max_size=3)
        ends = st.sampled_from((b"\r\n", b"\n"))
        start = b"GET / HTTP/1.1\r\nHost: a\r\n"
        return st.builds(
            lambda lines, end: start + b"".join(line + end for line in lines) + b"\r\n",
            lines,
            ends,
        )

    def disagreement(self, octets: bytes) -> fuzz.Find | None:
        requests = request_reader.read(octets).requests
        broken = requests[-1].broken if requests else None
        if broken not in self.rules:
            return None
        about = frozenset({str(broken)})
        return fuzz.Find(fuzz.Kind.ACCEPTED, "field section", octets, "200", about)


def test_a_second_fault_of_a_part_is_found_too() -> None:
    planted = (Broken.BARE_LF, Broken.COLON)
    told: list[fuzz.Find] = []
    found, _ = fuzz.search(Planted(*planted), seconds=60.0, seed=9, tell=told.append, most=2)
    assert {word for find in found for word in find.about} == {*planted}
    assert told == found


def test_a_find_that_another_covers_is_not_told_again() -> None:
    def refused(*about: str) -> fuzz.Find:
        return fuzz.Find(fuzz.Kind.REFUSED, "valid", b"", "400", frozenset(about))

    assert refused("query").covers(refused("query", "POST"))
    assert not refused("query", "POST").covers(refused("query"))
    assert not refused("obs-text").covers(refused("query"))


def test_the_suite_of_finds_is_there_without_one(here: Path) -> None:
    with peers.peer(careless) as peer:
        url = f"http://127.0.0.1:{peer.port}/"
        result = CliRunner().invoke(cli.httpmark, ["check", url, "--suite", "found"])
    assert isinstance(result.exception, NothingSelected)


@pytest.mark.process
def test_nobody_there_is_said() -> None:
    with peers.peer(peers.mute) as peer:
        pass
    result = CliRunner().invoke(cli.httpmark, ["fuzz", f"http://127.0.0.1:{peer.port}/"])
    assert isinstance(result.exception, HarnessError)


@pytest.mark.process
@pytest.mark.parametrize("named", ["in the URL", "by --path"])
def test_the_path_of_a_target_is_the_one_that_is_asked(here: Path, named: str) -> None:
    asked: set[bytes] = set()

    def one_path(connection: socket.socket) -> None:
        while request := peers.head(connection):
            asked.add(request.split(b" ", 2)[1])
            is_known = request.split(b" ", 2)[1].startswith(b"/app")
            connection.sendall(peers.OK if is_known else peers.NOT_FOUND)

    with peers.peer(one_path) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        own = [f"{url}/app"] if named == "in the URL" else [url, "--path", "/app"]
        CliRunner().invoke(cli.httpmark, ["fuzz", *own, "--seconds", "0.5", "--seed", "5"])
    assert any(path.startswith(b"/app") for path in asked)
    assert not any(path.startswith(b"/hello") for path in asked)
