"""Cases explained: found by slug, family or number; a reproducer that sends the very bytes."""

from __future__ import annotations

import functools
import re
import socket

import pytest

from httpmark.harness.catalogue import delivery_modes, expectation, loading, lookup
from httpmark.harness.command import check_options, listing, named_target
from httpmark.harness.firing import replay, targets
from httpmark.harness.gate import findings
from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.model.cases import Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.exchanges import Outcome
from httpmark.harness.model.load import Bottleneck
from httpmark.harness.model.verdicts import Word
from httpmark.harness.report import byte_maps, explain, glossary, scoreboard
from httpmark.harness.servers import brought, manifests
from httpmark.harness.tests.shared import made_run, peers
from httpmark.harness.tests.shared.asking_again import asked_again


@pytest.fixture(autouse=True)
def _manifests_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "servers", functools.cache(manifests.servers))


def target_at(port: int, *header: str) -> targets.Target:
    """A server on this machine, as `httpmark replay` asks it."""
    return named_target.asked(
        check_options.Options(target=f"127.0.0.1:{port}", path="/hello", header=header)
    )


@pytest.mark.parametrize("name", ["path_byte-80", "path_byte", "SEED-PATH"])
def test_a_case_is_found_by_slug_family_and_number(name: str) -> None:
    family, planned = lookup.find(name)
    assert family.id == "path_byte"
    assert planned.case.sent.startswith(b"GET /hello\x80 ")


@pytest.mark.parametrize("name", ["path_byte-zz", "path_byt", "", "none-at-all"])
def test_an_unknown_case_is_said(name: str) -> None:
    with pytest.raises(HarnessError, match="no case"):
        lookup.find(name)


def test_explain_says_rule_and_bytes() -> None:
    text = explain.explain("path_byte-0d")
    assert "RFC 3986 3.3" in text
    assert r"GET /hello\r HTTP/1.1\r\n" in text


@pytest.mark.process
def test_replay_shows_both_sides_and_the_verdict() -> None:
    with peers.peer(peers.closing(peers.BAD)) as peer:
        target = target_at(peer.port)
        text = replay.replay("path_byte-00", target).text
    assert r"GET /hello\x00 HTTP/1.1" in text
    assert "HTTP/1.1 400 Bad Request" in text
    assert "verdict:  pass" in text


def test_servers_of_one_engine_are_listed_together_its_own_first() -> None:
    names = [one.name for one in listing.grouped(manifests.servers())]
    at = names.index("node")
    assert names[at : at + 3] == ["node", "aiohttp", "uvicorn_httptools"]
    assert sorted(names) == [one.name for one in manifests.servers()]


@pytest.mark.process
@pytest.mark.parametrize("what", ["servers", "suites", "cases", "profiles"])
def test_listings_have_the_contracts_shape(what: str) -> None:
    rows, value = listing.listing(what, brought.Field())
    assert rows
    assert list(value) == [what]
    keys = {
        "servers": {"name", "version", "capabilities", "available", "binary"},
        "suites": {"name", "cases"},
        "cases": {"id", "ref", "family", "level", "clause", "suite", "generated"},
        "profiles": set(),
    }[what]
    for entry in value[what]:
        assert what == "profiles" or keys <= set(entry)


def test_every_case_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it needs of a target; what looks at other answers only says so."""
    known = loading.load()
    monkeypatch.setattr(loading, "load", lambda: known)
    for family in known.families.values():
        if not lookup.has_octets(known, family.id):
            with pytest.raises(HarnessError, match="sends nothing of its own"):
                explain.explain(family.id)
            continue
        text = explain.explain(family.id)
        assert text.startswith(family.id)
        assert "views." not in text


def test_a_talk_is_told_write_by_write() -> None:
    text = explain.explain("EXP-01")
    assert text.count("sent:") == 2
    assert "(until an answer comes, at most 2 s)" in text
    assert "select.select([s], [], [], 2)[0] and print" in text.splitlines()[-1]
    assert "| timeout" not in text
    assert "(half-close)" in explain.explain("EOF-04")
    said = explain.explain("EOF-04").partition("by hand:\n")[2]
    assert "s.shutdown(1)" in said
    assert not re.search(r"^(printf|curl)", said, re.MULTILINE), "neither says a half-close"


@pytest.mark.parametrize(
    ("case", "waits"),
    [
        ("get-plain", "timeout 2 nc "),
        ("stop-in-method", "timeout 7 nc "),
        ("idle-after-answer", "timeout 9 nc "),  # an answer, then the idle timeout
        ("silent-from-the-start", "s.settimeout(7)"),
        ("expect-continue-close", "s.settimeout(4)"),
        ("smuggle-pause", "time.sleep(7.5)"),
    ],
)
def test_a_line_by_hand_waits_as_long_as_the_case_and_shows_a_close(case: str, waits: str) -> None:
    line = explain.explain(case).partition("by hand:\n")[2].splitlines()[0]
    assert waits in line
    shows = "0: closed, 124: open after" if line.startswith("printf") else 'print("closed")'
    assert shows in line


def test_a_line_nobody_copies_is_a_replay() -> None:
    said = explain.explain("target-1m").partition("by hand:\n")[2]
    assert said == "httpmark replay target-1m http://127.0.0.1:PORT/"
    assert "openssl s_client" in explain.explain("connection-close-notify")


def test_what_a_program_plays_is_not_replayed() -> None:
    assert "two answers in order" in " ".join(explain.explain("PIPE-11").split())
    with peers.peer(peers.closing(peers.BAD)) as peer:
        target = target_at(peer.port)
        with pytest.raises(HarnessError, match="check TARGET --suite rfc --case"):
            replay.replay("PIPE-11", target)


@pytest.mark.process
def test_a_failing_case_is_made_smaller_while_it_fails() -> None:
    """And while it breaks the same rule: a request that all accept shows nothing."""

    def accepting(connection: socket.socket) -> None:
        while peers.head(connection):
            connection.sendall(peers.OK)

    with peers.peer(accepting) as peer:
        target = target_at(peer.port)
        text = replay.minimised("host-missing-other-field", target).text
        assert replay.minimised("get-plain", target).text.endswith("nothing to make smaller")
        assert "fewer do not show it" in replay.minimised("host-twice-different", target).text
    assert "fail, with 23 of 31 bytes" in text
    assert f"| timeout 2 nc 127.0.0.1 {peer.port}; printf" in text


def test_every_word_of_a_report_is_explained() -> None:
    """What a gate, a scoreboard or the ledger calls by a name, ``explain`` knows by that name."""
    known = loading.load()
    words = [
        *(row.id for row in known.requirements),
        *RULES,
        *{family.group for family in known.families.values()},
        *known.suites,
        *known.plans,
        *delivery_modes.MODES,
        *findings.RULESETS,
        *expectation.WORDS,
        *(server.name for server in manifests.servers()),
        *(str(one) for kind in (Word, Outcome, Level, findings.Status, Bottleneck) for one in kind),
        *byte_maps.READINGS,
        *("controls", "must", "score", "server", "deliveries", "cl/must", "get-plain-delivery"),
        *(word for server in manifests.servers() for word in server.capabilities),
    ]
    for word in words:
        assert explain.explain(word), word


def test_every_column_of_a_scoreboard_is_explained() -> None:
    text = scoreboard.scoreboard(made_run.complete_run(made_run.FEW, only=made_run.OCTET_FAMILIES))
    heads = [line for line in text.splitlines() if line.startswith("server  ")]
    assert len(heads) > 6
    for head in heads:
        # Words of several parts first; heads as wide as their columns stand one blank apart.
        for word in sorted((*glossary.WORDS, *glossary.SAME), key=len, reverse=True):
            head = re.sub(rf"(?<!\S){re.escape(word)}(?!\S)", "", head)
        assert not head.split()


def test_a_word_and_a_case_of_one_name_are_both_told() -> None:
    text = explain.explain("host-missing")
    assert "HOST-01" in text
    assert "a requirement: met when all its cases pass" in text


def test_no_word_hides_a_case() -> None:
    known = loading.load()
    cases = {word for family in known.families.values() for word in (family.id, *family.refs)}
    assert not cases & {*glossary.WORDS, *glossary.SAME}


def test_what_a_check_of_every_answer_asks_is_told_in_80_columns() -> None:
    for word in ("RESP-20", "CL", "date-sent", "9112/6.3", "not applicable", "R400C"):
        text = explain.explain(word)
        assert max(map(len, text.splitlines())) <= 80, word
    assert "MUST: RFC 9110 6.6.1" in explain.explain("RESP-20")
    assert "date-sent" in explain.explain("resp-20")


def gluing(connection: socket.socket) -> None:
    """Takes a header section that came in one piece alone."""
    while request := connection.recv(65536):
        connection.sendall(peers.OK if request.endswith(b"\r\n\r\n") else peers.BAD)
        if not request.endswith(b"\r\n\r\n"):
            return


@pytest.mark.process
def test_a_cut_is_replayed_beside_one_write_of_the_same() -> None:
    with peers.peer(gluing) as peer:
        target = target_at(peer.port)
        text = replay.replay_cut("get-plain", target, "two@17").text
        while "400 instead of 200 (3 of 3 times)" not in text:
            # A busy machine let the peer read both writes as one. What it says is true.
            assert re.search(r"400 instead of 200 \([12] of 3 times\)|the same \(3 of 3", text), (
                text
            )
            asked_again.note("a cut of get-plain", "the peer read both writes as one")
            text = replay.replay_cut("get-plain", target, "two@17").text
        with pytest.raises(HarnessError, match="no delivery 'two@9999'"):
            replay.replay_cut("get-plain", target, "two@9999")
        with pytest.raises(HarnessError, match="no delivery 'slowly'"):
            replay.replay_cut("get-plain", target, "slowly")
        with pytest.raises(HarnessError, match="is only sent whole"):
            replay.replay_cut("host-64k", target, "tail")
    assert "HTTP/1.1 200 OK" in text
    assert "received, cut as two@17 in 2 writes" in text
    assert "HTTP/1.1 400 Bad Request" in text
    assert text.endswith("the answer differs: 400 instead of 200 (3 of 3 times)")


@pytest.mark.process
def test_a_cut_through_a_secret_does_not_show_it() -> None:
    with peers.peer(gluing) as peer:
        target = target_at(peer.port, "X-Key: s3cr3t-value")
        sent = delivery_modes.message(lookup.find("get-plain", target.facts())[1].case)
        at = sent.index(b"s3cr3t") + 3
        text = replay.replay_cut("get-plain", target, f"two@{at}").text
    assert "s3c" not in text
    assert "r3t" not in text
    assert "X-Key: ***" in text


@pytest.mark.process
def test_a_server_that_does_not_care_where_is_said_to() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        target = target_at(peer.port)
        text = replay.replay_cut("get-plain", target, "byte").text
    assert text.endswith("the answer is the same (3 of 3 times)")


def test_a_crash_says_how_it_is_done_again() -> None:
    told = explain.explain("transfer-encoding-gzip-crash")
    assert "--suite rfc --case transfer-encoding-gzip" in told
    assert explain.explain("crash").startswith("crash: The server died or hung")
