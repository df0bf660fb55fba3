"""What was fired is judged from what was stored: by one process or two, at once or later."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.catalogue import loading, lookup
from httpmark.harness.firing import conformance, targets
from httpmark.harness.judging import suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Family
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()


_NAMES = [
    family.id
    for family in KNOWN.of_suite("rfc")
    if family.group == "CL" and lookup.has_octets(KNOWN, family.id)
]
_FORGETS = (
    "import sys; from multiprocessing.connection import Connection;"
    "pipe = Connection(int(sys.argv[1])); pipe.recv(); pipe.send({})"
)


@pytest.fixture(scope="module")
def fired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Content-Length drew from a naive server."""
    path = tmp_path_factory.mktemp("fired") / "evidence.sqlite"
    with peers.peer(peers.naive) as peer, Evidence(path, create=True) as evidence:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        conformance.fire(
            KNOWN, "rfc", target, evidence, suite_results.Fired(),
            progress=lambda _: None, selected=lambda one: one.id in _NAMES,
        )  # fmt: skip
    return path


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (sys.executable, suite_results._SECOND),
        (sys.executable, _FORGETS),
        (sys.executable, "raise SystemExit(1)"),
        ("/bin/false", ""),
    ],
    ids=["whole", "forgets-and-ends", "ends", "is-none"],
)
def test_a_second_process_judges_as_the_first_would(
    fired: Path, monkeypatch: pytest.MonkeyPatch, program: str, code: str
) -> None:
    """What it does not bring, because it cannot, is judged here."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(suite_results, "_SECOND", code)
    monkeypatch.setattr(suite_results, "_TWOFOLD_FROM", 1)
    found = []
    with Evidence(fired) as evidence:
        facts = evidence.facts("peer")
        assert facts is not None
        for is_worth_it in (False, True):
            with suite_results.Second() as second:
                second.start(suite_results._SECOND_FROM if is_worth_it else 0)
                assert second.free is is_worth_it
                judged = suite_results.judged_twofold(
                    KNOWN, _NAMES, facts, evidence, "peer", quick=False, second=second
                )
            found.append(
                {
                    name: (one.tally, one.first, one.exchanges, one.answers.tallies(), doubted)
                    for name, (one, doubted) in judged.items()
                }
            )
    assert found[0].keys() == set(_NAMES)
    assert any(doubted for *_, doubted in found[0].values())
    assert found[0] == found[1]


def test_what_was_judged_in_firing_is_what_evidence_says(tmp_path: Path) -> None:
    def chosen(family: Family) -> bool:
        return family.id in ("get-plain", "path_octet_good", "host-missing")

    with peers.peer(peers.naive) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired, progress=lambda _: None, selected=chosen
            )
            live = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired)
            again = suite_results.score_suite(KNOWN, "rfc", "peer", evidence)
    assert fired.folded, "what nothing is doubtful of is judged once"
    assert live.must is not None
    assert live.must["passed"] > 0
    wall = {"wall_seconds": live.wall_seconds, "probe_cpu_seconds": live.probe_cpu_seconds}
    assert msgspec.structs.replace(again, **wall) == live


def test_refusing_all_content_is_no_merit_where_content_is_refused_wrongly(
    tmp_path: Path,
) -> None:
    def without_content(connection: socket.socket) -> None:
        while octets := peers.head(connection):
            if not octets.startswith(b"GET"):
                connection.sendall(peers.BAD)
                return
            connection.sendall(peers.OK)

    wanted = ("post-content-length", "content-length-plus-sign", "field-name-space-before-colon")
    with peers.peer(without_content) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired,
                progress=lambda _: None, selected=lambda family: family.id in wanted,
            )  # fmt: skip
            cases = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired).cases
    assert cases["post-content-length"].word is Word.FAIL
    found = cases["content-length-plus-sign"]
    assert found.word is Word.NOT_APPLICABLE
    assert found.actual.startswith("needs BASE-03, which is not accepted (400")
    assert cases["field-name-space-before-colon"].word is not Word.NOT_APPLICABLE


def test_a_quick_look_thins_the_two_largest_families_and_keeps_the_published_corpus() -> None:
    thinned = {
        one.id for one in KNOWN.families.values() if suite_results.step_of(one, quick=True) > 1
    }
    assert thinned == {"path_pair", "query_pair"}
    assert not any(suite_results.step_of(one, quick=False) > 1 for one in KNOWN.families.values())
    for quick in (False, True):
        assert suite_results.size(KNOWN, ("seed",), lambda _: True, quick=quick) == 123_942 + 587
    chosen = {"path_pair": 2001, "host-missing": 1}
    assert suite_results.size(KNOWN, ("rfc",), lambda one: one.id in chosen, quick=True) == sum(
        chosen.values()
    )
